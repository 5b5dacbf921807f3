"""Planted bugs with people who have several rows."""

from .patching import Patch
from .planted_bug import PlantedBug

PART = "People with several rows"

BUGS = [
    PlantedBug(
        name="id cap ignored",
        summary="Which rows of a person stay is worked out, and then all are counted.",
        function="trusted:read_reference",
        old="kept",
        new="None",
        caught_by="tests/trusted/test_people.py::test_the_cap_is_applied_before_everything_that_is_charged[DPMarginals]",
        seen="Privacy on Beam bounded the contributions of some users wrongly when it counted distinct values.",
        source="google/differential-privacy#84",
    ),
    PlantedBug(
        name="id cap off by one",
        summary="A person keeps one row more than is charged.",
        function="kept_rows",
        old="place < most",
        new="place <= most",
        caught_by="tests/trusted/test_people.py::test_no_person_keeps_more_than_the_cap",
        seen="Likewise.",
        source="google/differential-privacy#84",
    ),
    PlantedBug(
        name="id cap forgotten after private bounds",
        summary="After private bounds were estimated, the rows are read again, and this time all of them.",
        function="Reference.with_domain",
        old="self._kept",
        new="None",
        caught_by="tests/trusted/test_people.py::test_people_with_private_bounds_are_capped_in_every_read",
        seen="SmartNoise's covariance clipped the data, and then computed from the data as they were before.",
        source="opendp/smartnoise-sdk#622",
    ),
    PlantedBug(
        name="id cap ignored where an engine counts",
        summary="A lazy frame is counted whole, whoever its rows belong to.",
        function="_open_lazy",
        old="kept_frame(...)",
        new="frame.drop(person)",
        caught_by="tests/trusted/test_in_engine.py::test_people_keep_the_same_rows_as_in_memory[polars-grid]",
        seen="Privacy on Beam, a pipeline too.",
        source="google/differential-privacy#84",
    ),
    PlantedBug(
        name="rows of a person in an order by another number than is counted",
        summary="The engine puts rows in order by its own cast of a decimal, and Arrow's cast of the same decimal is counted.",
        function="engines:number",
        old="column.cast(nw.Float64) + 0.0",
        new="nw.col(name) if read_by_text(dtype) else column.cast(nw.Float64) + 0.0",
        more=(
            Patch("engines:positions", "nw.col(value(j))", "nw.col(value(j)).cast(nw.Float64)"),
            Patch("trusted:_order", "nw.col(value(j))", "nw.col(value(j)).cast(nw.Float64)"),
            Patch("tables:_series", "not objects and read_by_text(series.dtype)", "objects"),
        ),
        caught_by="tests/tables/test_stored_numbers.py::test_people_with_decimals_that_differ_in_the_last_digit",
        seen="No public case known to us but our own: an attack on DuckDB's DECIMAL columns showed an epsilon of 4.5 where 1 was "
        "stated.",
    ),
    PlantedBug(
        name="two people taken for one",
        summary="Ids that differ in upper and lower case are one person, whose rows then depend on somebody else's.",
        function="identity",
        old="value.strip()",
        new="value.strip().lower()",
        caught_by="tests/trusted/test_people.py::test_ids_are_equal_as_their_values_are",
    ),
]
