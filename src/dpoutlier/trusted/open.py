"""Reference rows from whatever a user may pass to ``fit``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpoutlier.model.plan import Plan
from dpoutlier.tables import convert as tables
from dpoutlier.trusted.queries import InBlocks, Readings
from dpoutlier.trusted.reference import in_silence, read_reference

__all__ = ["open_reference"]


def open_reference(reference: Any, plan: Plan, charge: Callable[[], None] = lambda: None) -> Readings:
    """The rows that a fit may read: of each person at most so many, if a column tells people apart.

    ``charge`` is called when all that is public has been checked, and before any row is read.
    """  # (P10)
    person, most = plan.guarantee.person, plan.guarantee.rows_per_person
    if tables.is_lazy(reference):
        return _open_lazy(reference, plan, person, most, charge)
    charge()
    return InBlocks(read_reference(reference, plan.domain, person, most))


def _open_lazy(reference: Any, plan: Plan, person: str | None, most: int, charge: Callable[[], None]) -> Readings:
    from pyarrow import concat_tables  # noqa: PLC0415 - slow to import, and only needed here

    from dpoutlier.engines.frames import check_columns, lazy_frame, plain_frame  # noqa: PLC0415 - an array must not wait for it
    from dpoutlier.engines.kinds import Engine, engine_of  # noqa: PLC0415
    from dpoutlier.engines.streams import arrow_batches, check_engine  # noqa: PLC0415
    from dpoutlier.engines.values import value_frame  # noqa: PLC0415
    from dpoutlier.trusted.engine_people import kept_frame  # noqa: PLC0415
    from dpoutlier.trusted.in_engine import InEngine  # noqa: PLC0415
    from dpoutlier.trusted.spark import OnSpark, check_executors  # noqa: PLC0415

    engine = engine_of(reference)
    given, domain = dict(lazy_frame(reference).collect_schema()), plan.domain
    check_columns(given, domain, person)
    check_engine(reference, given)
    reference, types = plain_frame(reference, given)
    person = None if person is None else list(types)[list(given).index(person)]
    if engine is Engine.SPARK and (domain.bought or plan.target_fpr is not None):
        check_executors(reference, "to buy bounds" if domain.bought else "a threshold (target_fpr)")
    # The one conversion: all below sees its result. It reads no row, and refuses what the engine cannot convert. (P9)
    frame = value_frame(lazy_frame(reference), types, domain, person)
    charge()
    opened = OnSpark if engine is Engine.SPARK else InEngine
    if person is None:
        return opened(frame, domain)
    if engine is Engine.DASK:  # has no order within groups, and may give rows in another order each time
        native = frame.to_native()
        table = in_silence(
            lambda: concat_tables(arrow_batches(native, list(native.columns)), promote_options="permissive")
        )
        return InBlocks(read_reference(table, domain, person, most, are_values=True))
    return opened(kept_frame(frame, domain, person, types[person], most), domain)
