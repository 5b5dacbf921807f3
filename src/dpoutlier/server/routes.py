"""The routes: who asks, for what, and with which points."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from urllib.parse import parse_qsl

import numpy as np
from pydantic_core import to_json

from dpoutlier.exceptions import DpoutlierError
from dpoutlier.features.category import NUMBER
from dpoutlier.server import metrics
from dpoutlier.server.answers import CONTENT_TYPES, WRITERS
from dpoutlier.server.arrow_points import arrow_points
from dpoutlier.server.bodies import BodyReader, answer_kind, body_kind
from dpoutlier.server.csv_points import csv_points
from dpoutlier.server.envelope import Exchange, Receive, Reply, Scope
from dpoutlier.server.explanations import explanations_body
from dpoutlier.server.guard import Guard
from dpoutlier.server.json_points import json_points
from dpoutlier.server.keys import Key
from dpoutlier.server.limits import RateLimit
from dpoutlier.server.models import Served, Shelf
from dpoutlier.server.pagefiles import page_file
from dpoutlier.server.points import Points, missing_value
from dpoutlier.server.refusals import Refusal, cut
from dpoutlier.server.settings import Settings

__all__ = ["Handler", "Routes"]

Handler = Callable[[Scope, Receive], Awaitable[Reply]]

SHORT = 0.002
"""Seconds of work that the thread which serves all requests does itself; longer work goes to another."""
OVERHEAD = 0.0003
LARGEST_SHORT = 10_000
"""Bytes of a body that may be short work, however fast those before it were: some 13 milliseconds with the slowest models."""
GUESSED = {"json": 5e-8, "csv": 5e-8, "arrow": 1e-8}
"""Seconds for a byte, before any was measured, and at least."""
DENSE = 32
"""Bytes for a value. Bodies that have more are padded, and being fast at them means nothing."""
AT_ONCE = 2
MOST_EXPLAINS = 8
"""Requests for explanations that wait in a worker: each may take seconds, and one is worked on at a time."""
NO_MODEL = "there is no model of that id, or this key is not for it. GET /v1/models lists those that it is for."
TEXT = ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)


class Asked(NamedTuple):
    """The query parameters of a request for scores."""

    nulls: bool
    target_fpr: float | None
    threshold: float | None


class Routes:
    """All routes of a worker."""

    def __init__(self, settings: Settings, shelf: Shelf, guard: Guard) -> None:
        self.settings, self.shelf, self.guard = settings, shelf, guard
        self.bodies = BodyReader(settings.max_bytes, settings.body_seconds, 8 * settings.max_bytes)
        self.rate = RateLimit(settings.rate, settings.shared)
        self.threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="score")
        self.explaining, self.explainer = 0, ThreadPoolExecutor(1, thread_name_prefix="explain")
        self.reasons: list[str] = ["starting"]
        self.extra_reasons: Callable[[], list[str]] = list

    # Open to all ---------------------------------------------------------------------------------------------------------

    async def page(self, scope: Scope, _: Receive) -> Reply:
        return page_file(scope["path_params"].get("name", "index.html"))

    async def health(self, _scope: Scope, _: Receive) -> Reply:
        return Reply(b'{"status":"ok"}')

    async def ready(self, _scope: Scope, _: Receive) -> Reply:
        reasons = [*self.reasons, *self.extra_reasons()]
        if reasons:
            return Reply(to_json({"status": "not ready", "reasons": reasons}), status=503)
        return Reply(b'{"status":"ready"}')

    # For keys ------------------------------------------------------------------------------------------------------------

    async def metrics(self, scope: Scope, _: Receive) -> Reply:
        if not self._key(scope).metrics:
            raise Refusal(
                "not-for-metrics", "this key is not for metrics; make one with: dpoutlier keys create --metrics."
            )
        return Reply(metrics.page(), TEXT)

    async def models(self, scope: Scope, _: Receive) -> Reply:
        key = self._key(scope)
        self.rate.take(key.id)
        found = [one.summary for name, one in self.shelf.served.items() if key.may_use(name)]
        return Reply(to_json({"models": found}))

    async def model(self, scope: Scope, _: Receive) -> Reply:
        return Reply(self._served(scope).detail)

    async def score(self, scope: Scope, receive: Receive) -> Reply:
        exchange: Exchange = scope["exchange"]
        served = self._served(scope, audited=True)
        headers = scope["headers"]
        kind = body_kind(headers)
        out = answer_kind(headers, kind)
        asked = _asked(scope["query_string"])
        threshold = asked.threshold
        if asked.target_fpr is not None:
            threshold = _threshold_for(served, asked.target_fpr)
        body = await self.bodies.read(headers, receive, complete="complete" in scope)

        def work() -> tuple[bytes, int]:
            points = self._points(kind, body, served, self.settings.max_rows)
            scorer = served.scorer(nulls=asked.nulls, threshold=threshold)
            told = scorer.of_columns(points.columns)
            if told is None:
                raise missing_value(points, served.domain)
            used = served.model.threshold if threshold is None else threshold
            return WRITERS[out](told, served, used), len(points)

        try:
            answer, exchange.rows = await self._run(work, served, kind, len(body))
        finally:
            self.bodies.release(body)
        return Reply(answer, ((b"content-type", CONTENT_TYPES[out]),))

    async def explain(self, scope: Scope, receive: Receive) -> Reply:
        exchange: Exchange = scope["exchange"]
        served = self._served(scope, audited=True)
        headers = scope["headers"]
        kind = body_kind(headers)
        answer_kind(headers, "json", ("json",))
        asked = _asked(scope["query_string"])
        if asked != Asked(nulls=False, target_fpr=None, threshold=None):
            raise Refusal("bad-parameter", "explain takes no parameters; points must miss no value.")
        body = await self.bodies.read(headers, receive, complete="complete" in scope)

        def work() -> tuple[bytes, int]:
            points = self._points(kind, body, served, self.settings.explain_rows)
            if served.scorer().of_columns(points.columns) is None:
                raise missing_value(points, served.domain)
            values = np.empty((len(points), served.domain.n_features), object)
            for j in range(served.domain.n_features):
                values[:, j] = [points.value(row, j) for row in range(len(points))]
            if sum(len(value) for value in values.flat if isinstance(value, str)) > self.settings.max_bytes:
                raise self.bodies.too_large()  # by a dictionary of long texts
            return explanations_body(served, points, values), len(points)

        try:
            answer, exchange.rows = await self._explain(work)
        finally:
            self.bodies.release(body)
        return Reply(answer)

    # ---------------------------------------------------------------------------------------------------------------------

    def _key(self, scope: Scope) -> Key:
        exchange: Exchange = scope["exchange"]
        try:
            key = self.guard.key_of(scope["headers"])
        except Refusal:
            exchange.tried = self.guard.tried(scope["headers"])
            raise
        exchange.key = key.id
        return key

    def _served(self, scope: Scope, *, audited: bool = False) -> Served:
        """The model of a request, if the key is for it; what is not is not told from what does not exist."""
        exchange: Exchange = scope["exchange"]
        key, name = self._key(scope), scope["path_params"]["model"]
        self.rate.take(key.id)
        exchange.audited = audited  # and not before: who may ask no more must not fill the disk either
        served = self.shelf.get(name)
        if served is not None:  # a name that no model has is the client's text, and is noted nowhere
            exchange.model = served.name
        if served is None or not key.may_use(name):
            raise Refusal("unknown-model", NO_MODEL)
        exchange.release = served.release
        return served

    def _points(self, kind: str, body: bytes, served: Served, most_rows: int) -> Points:
        if kind == "arrow":
            return arrow_points(body, served, most_rows, self.settings.max_bytes)
        read = json_points if kind == "json" else csv_points
        return read(body, served.domain, served.person, most_rows)

    async def _explain(self, work: Callable[[], tuple[bytes, int]]) -> tuple[bytes, int]:
        """In a thread of its own, so that scores need not wait for it."""
        if self.explaining > MOST_EXPLAINS:
            raise Refusal(
                "unavailable",
                f"{MOST_EXPLAINS} requests for explanations wait already; try again.",
                ((b"retry-after", b"5"),),
            )
        self.explaining += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.explainer, work)
        finally:
            self.explaining -= 1

    def close(self) -> None:
        """Wait for what is being worked on."""
        self.threads.shutdown()
        self.explainer.shutdown()

    async def _run(
        self, work: Callable[[], tuple[bytes, int]], served: Served, kind: str, size: int
    ) -> tuple[bytes, int]:
        """Short work at once, and long work in another thread, by how long the last bodies of that kind took."""
        pace = served.seconds_per_byte
        if size > LARGEST_SHORT or pace.get(kind, GUESSED[kind]) * size > SHORT:
            return await asyncio.get_running_loop().run_in_executor(self.threads, _timed, work, served, kind, size)
        return _timed(work, served, kind, size)


def _timed(work: Callable[[], tuple[bytes, int]], served: Served, kind: str, size: int) -> tuple[bytes, int]:
    pace, begin = served.seconds_per_byte, time.thread_time()
    found = work()
    seconds = max((time.thread_time() - begin - OVERHEAD) / max(size, 1), GUESSED[kind])
    known = pace.get(kind, GUESSED[kind])
    if seconds > known or size <= DENSE * found[1] * served.domain.n_features:
        pace[kind] = known + (0.5 if seconds > known else 0.05) * (seconds - known)
    return found


def _threshold_for(served: Served, target_fpr: float) -> float:
    try:
        return served.threshold_for(target_fpr)
    except DpoutlierError as error:
        text = str(error)
    raise Refusal("bad-parameter", f"target_fpr: {text}")


def _asked(query: bytes) -> Asked:
    if not query:
        return Asked(nulls=False, target_fpr=None, threshold=None)
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=10)
    except ValueError:
        pairs = [("", "")]
    given = dict(pairs)
    if len(given) < len(pairs) or not given.keys() <= {"missing", "target_fpr", "threshold"}:
        unknown = next((name for name in given if name not in {"missing", "target_fpr", "threshold"}), "one twice")
        raise Refusal(
            "bad-parameter", f"parameters may be missing, target_fpr and threshold, once each, got {cut(unknown)}."
        )
    missing = given.get("missing", "error")
    if missing not in {"error", "null"}:
        raise Refusal("bad-parameter", f"missing must be error or null, got {cut(missing)}.")
    if "target_fpr" in given and "threshold" in given:
        raise Refusal("bad-parameter", "give either target_fpr or threshold, and not both.")
    threshold = _number(given, "threshold", "a number, such as 3.2")
    target_fpr = _number(given, "target_fpr", "a number between 0 and 1, both excluded")
    if target_fpr is not None and not 0 < target_fpr < 1:
        raise Refusal(
            "bad-parameter", f"target_fpr must be a number between 0 and 1, both excluded, got {target_fpr!r}."
        )
    return Asked(missing == "null", target_fpr, threshold)


def _number(given: dict[str, str], name: str, must: str) -> float | None:
    text = given.get(name)
    if text is None:
        return None
    if not NUMBER.fullmatch(text) or len(text) > 400:
        raise Refusal("bad-parameter", f"{name} must be {must}, got {cut(text)}.")
    return float(text)
