"""Planted bugs with people who have several rows."""

from planted import Patch
from planted_bug import UNKNOWN, PlantedBug

__all__ = ["BUGS"]

PART = "People with several rows"

BUGS = [
    PlantedBug(
        part=PART,
        name="id cap ignored",
        summary="Which rows of a person stay is worked out, and then all are counted.",
        file="trusted/reference.py",
        old="return Reference(tables.without(reference, person), domain, kept, are_values=are_values)",
        new="return Reference(tables.without(reference, person), domain, are_values=are_values)",
        caught_by="tests/trusted/test_people.py::test_the_cap_is_applied_before_everything_that_is_bought[DPMarginals]",
        seen="Privacy on Beam bounded the contributions of some users wrongly when it counted distinct values.",
        source="google/differential-privacy#84",
    ),
    PlantedBug(
        part=PART,
        name="id cap off by one",
        summary="A person keeps one row more than is charged.",
        file="trusted/people.py",
        old="(place < most)",
        new="(place <= most)",
        caught_by="tests/trusted/test_people.py::test_no_person_keeps_more_than_the_cap",
        seen="Likewise.",
        source="google/differential-privacy#84",
    ),
    PlantedBug(
        part=PART,
        name="id cap forgotten once bounds are bought",
        summary="After bounds were bought the rows are read again, and this time all of them.",
        file="trusted/reference.py",
        old="return Reference(self._table, domain, self._kept, are_values=self._are_values)",
        new="return Reference(self._table, domain, are_values=self._are_values)",
        caught_by="tests/trusted/test_people.py::test_people_with_bought_bounds_are_capped_in_every_read",
        seen="SmartNoise's covariance clipped the data, and then computed from the data as they were before.",
        source="opendp/smartnoise-sdk#622",
    ),
    PlantedBug(
        part=PART,
        name="id cap ignored where an engine counts",
        summary="A lazy frame is counted whole, whoever its rows belong to.",
        file="trusted/open.py",
        old="return opened(kept_frame(frame, domain, person, types[person], most), domain)",
        new="return opened(frame.drop(person), domain)",
        caught_by="tests/trusted/test_in_engine.py::test_people_keep_the_same_rows_as_in_memory[polars-grid]",
        seen="Privacy on Beam, a pipeline too.",
        source="google/differential-privacy#84",
    ),
    PlantedBug(
        part=PART,
        name="rows of a person in an order by another number than is counted",
        summary="The engine puts rows in order by its own cast of a decimal, and Arrow's cast of the same decimal is counted.",
        file="engines/values.py",
        old="return column.cast(nw.Float64) + 0.0",
        new="return nw.col(name) if read_by_text(dtype) else column.cast(nw.Float64) + 0.0",
        caught_by="tests/tables/test_stored_numbers.py::test_people_with_decimals_that_differ_in_the_last_digit",
        seen="No public case known to us but our own: an attack on DuckDB's DECIMAL columns showed an epsilon of 4.5 where 1 was "
        "stated.",
        source="",
        more=(
            Patch(
                "engines/places.py",
                "_position(nw.col(value(j)), domain",
                "_position(nw.col(value(j)).cast(nw.Float64), domain",
            ),
            Patch(
                "trusted/engine_people.py",
                "each = [(nw.col(value(j)), f",
                "each = [(nw.col(value(j)).cast(nw.Float64), f",
            ),
            Patch("tables/convert.py", "if not objects and read_by_text(series.dtype):", "if objects:"),
        ),
    ),
    PlantedBug(
        part=PART,
        name="two people taken for one",
        summary="Ids that differ in upper and lower case are one person, whose rows then depend on somebody else's.",
        file="tables/identity.py",
        old="text = value.strip()\n",
        new="text = value.strip().lower()\n",
        caught_by="tests/trusted/test_people.py::test_ids_are_equal_as_their_values_are",
        seen=UNKNOWN,
        source="",
    ),
]
