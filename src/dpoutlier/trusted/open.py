"""Reference rows from whatever a user may pass to ``fit``."""

from collections.abc import Callable
from typing import Any

from dpoutlier.engines.base import ClusterEngine, LocalEngine
from dpoutlier.engines.registry import query_engine_of
from dpoutlier.engines.schema import check_feature_types
from dpoutlier.model.plan import Plan
from dpoutlier.tables import convert
from dpoutlier.trusted.queries import ReferenceQueries, StreamedReference
from dpoutlier.trusted.reference import in_silence, read_reference


def open_reference(reference: Any, plan: Plan, charge: Callable[[], None] = lambda: None) -> ReferenceQueries:
    """The rows that a fit may read. With a person column: at most ``rows_per_person`` rows of each person.

    ``charge`` is called when all that is public has been checked, and before any row is read.
    """  # (P10)
    person, most = plan.guarantee.person, plan.guarantee.rows_per_person
    if convert.is_lazy(reference):
        return _open_lazy(reference, plan, person, most, charge)
    charge()
    return StreamedReference(read_reference(reference, plan.domain, person, most))


def _open_lazy(
    reference: Any, plan: Plan, person: str | None, most: int, charge: Callable[[], None]
) -> ReferenceQueries:
    from dpoutlier.engines.expressions.values import value_frame  # noqa: PLC0415 - an array must not wait for it
    from dpoutlier.trusted.engine_people import kept_frame  # noqa: PLC0415
    from dpoutlier.trusted.in_engine import EngineReference  # noqa: PLC0415
    from dpoutlier.trusted.on_cluster import ClusterReference, check_workers  # noqa: PLC0415

    engine, domain = query_engine_of(reference), plan.domain
    given = engine.schema(reference)
    check_feature_types(given, domain, person)
    engine.check(reference, given)
    plain, types = engine.plain(reference, given)
    person = None if person is None else list(types)[list(given).index(person)]
    if isinstance(engine, ClusterEngine):
        check_workers(engine, reference, plan)
    # The one conversion: all below sees its result. It reads no row, and refuses what the engine cannot convert. (P9)
    frame = value_frame(plain, types, domain, person)
    charge()
    if person is not None:
        if isinstance(engine, LocalEngine) and not engine.fixed_order:
            return StreamedReference(read_reference(_whole(engine, frame), domain, person, most, are_values=True))
        frame = kept_frame(frame, domain, person, types[person], most)
    return (
        ClusterReference(frame, domain, engine)
        if isinstance(engine, ClusterEngine)
        else EngineReference(frame, domain, engine)
    )


def _whole(engine: LocalEngine, frame: Any) -> Any:
    """All rows as one Arrow table: where an engine gives them in another order each time, they are read once."""
    from pyarrow import concat_tables  # noqa: PLC0415 - slow to import, and only needed here

    def read() -> Any:
        batches = engine.batches(frame.to_native(), frame.collect_schema().names())
        return concat_tables(batches, promote_options="permissive")

    return in_silence(read)
