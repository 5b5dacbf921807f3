"""What a client sends and what it takes for scores: within limits, of one release, whole."""

import os
import pickle
import threading

import numpy as np
import pyarrow as pa
import pytest

from dpoutlier import Client
from dpoutlier.client.bodies import scores_of_answer
from dpoutlier.client.connection import Answer
from dpoutlier.exceptions import ServerError
from fake_server import KEY, Lost, described, faked, refusal


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("DPOUTLIER_KEY", raising=False)


def scored(scores, release="0", *, changed=None, **options):
    """A body with scores, or with other columns."""
    columns = {"outlier_score": pa.array(scores, pa.float64()), "outside_bounds": pa.array([False] * len(scores))}
    table = pa.table(columns if changed is None else changed(columns)).replace_schema_metadata({"release": release})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


class Releases:
    """A server whose scores are the ages plus the number of the release. The release changes after a number of score requests.

    The requests that are ``late`` come to a worker who is yet to turn.
    """

    def __init__(self, *turns, late=()):
        self.turns, self.asked, self.late = list(turns), 0, late

    def now(self):
        return sum(self.asked >= turn for turn in self.turns)

    def __call__(self, request):
        if request.method == "GET":
            return 200, {}, described(str(self.now()), threshold=5.0 + self.now())
        age = self.now() - (self.asked in self.late)
        self.asked += 1
        ages = pa.ipc.open_stream(request.body).read_all().column("age").to_numpy()
        return 200, {}, scored(ages + 1000 * age, str(age))


AGES = np.arange(10.0)[:, None]  # four requests


@pytest.mark.parametrize("turn", [0, 1, 2, 3, 4, 5])
def test_a_release_replaced_in_the_middle_of_a_call_never_mixes(turn):
    server = Releases(turn)
    with faked(described_first := (200, {}, described("0")), always=server) as (url, _):
        client = Client(url, "m")
        assert described_first[2]["release"] == client.release == "0"
        scores = client.outlier_scores(AGES)
        assert scores.tolist() in ([*range(10)], [*range(1000, 1010)])
        assert (scores[0] >= 1000) == (turn < 4)
        assert client.release == ("1" if turn < 4 else "0")
        client.outlier_scores(AGES)
        assert client.release == "1"
        assert client.offset_ == -6.0  # of the new release


def test_a_worker_that_turns_later_than_the_others_is_waited_for():
    server = Releases(1, late=(2, 3, 5))
    with faked((200, {}, described("0")), always=server) as (url, _):
        assert Client(url, "m").outlier_scores(AGES).tolist() == [*range(1000, 1010)]


def test_a_release_replaced_all_the_time_is_an_error(monkeypatch):
    for module in ("served", "client"):
        monkeypatch.setattr(f"dpoutlier.client.{module}.WAITS", (0.01, 0.01))
    server = Releases(*range(1, 1000))
    with faked((200, {}, described("0")), always=server) as (url, _):
        client = Client(url, "m")
        with pytest.raises(ServerError, match="replaced the model"):
            client.outlier_scores(AGES)


def test_a_threshold_that_was_set_stays_when_the_release_is_replaced():
    with faked((200, {}, described("0")), always=Releases(0)) as (url, _):
        client = Client(url, "m").set_threshold(score=1005.5)
        assert client.predict(AGES).tolist() == [1] * 6 + [-1] * 4
        assert client.offset_ == -1005.5


def test_a_new_release_with_other_columns_is_checked_again():
    def other(request):
        return 200, {}, described("1", features=[described("1")["features"][0] | {"name": "bmi"}])

    replaced = Releases(0)
    with faked((200, {}, described("0")), replaced, always=other) as (url, _):
        client = Client(url, "m")
        with pytest.raises(ValueError, match="feature names should match"):
            client.outlier_scores(pa.table({"age": [1.0]}))
        assert client.feature_names_in_.tolist() == ["bmi"]


# What is sent -------------------------------------------------------------------------------------------------------------


def test_nothing_is_sent_that_does_not_fit():
    with faked((200, {}, described("0")), always=Lost) as (url, asked):
        client = Client(url, "m", timeout=1)
        for wrong in ([[1.0, 2.0]], [[None]], [["text"]], [1.0], pa.table({"bmi": [1.0]}), 3, "file.csv"):
            with pytest.raises((ValueError, TypeError)):
                client.outlier_scores(wrong)
        assert client.outlier_scores(np.empty((0, 1))).shape == (0,)
        assert client.outside_bounds([[3], [101]]).tolist() == [False, True]
        with pytest.raises(ValueError, match="lacks"):
            client.score_one({})
    assert len(asked) == 1


def test_requests_stay_within_the_limits_of_rows_and_bytes():
    rng = np.random.default_rng(0)
    for rows, size, n in ((7, 10**6, 50), (10**6, 3000, 2000), (10**6, 1, 3)):
        server = Releases()
        description = described("0", limits={"rows": rows, "bytes": size, "explain_rows": 1})
        with faked((200, {}, description), always=server) as (url, asked):
            points = rng.uniform(0, 100, (n, 1))
            assert (Client(url, "m").outlier_scores(points)[:, None] == points).all()
        sent = [pa.ipc.open_stream(one.body).read_all().num_rows for one in asked[1:]]
        assert sum(sent) == n
        assert max(sent) <= rows
        if size > 1:
            assert max(len(one.body) for one in asked[1:]) <= size
        else:
            assert max(sent) == 1  # the server will say what is wrong


def test_limits_that_have_become_smaller_are_asked_for_again():
    scores = Releases()

    def smaller(request):
        if request.method == "GET":
            return 200, {}, described("0", limits={"rows": 4, "bytes": 10**6, "explain_rows": 1})
        many = pa.ipc.open_stream(request.body).read_all().num_rows > 4
        return refusal(413, "too-many-rows", "too many") if many else scores(request)

    with faked((200, {}, described("0", limits={"rows": 9, "bytes": 10**6, "explain_rows": 1})), always=smaller) as (
        url,
        _,
    ):
        assert Client(url, "m").outlier_scores(AGES).tolist() == [*range(10)]
    with faked(always=lambda request: smaller(request) if request.method == "GET" else refusal(413)) as (url, asked):
        with pytest.raises(ServerError, match="come back later"):
            Client(url, "m").outlier_scores(AGES)
        assert [one.method for one in asked] == ["GET", "POST", "GET"]


def more_rows_than_bytes(n):
    """A batch of one row that declares n of them."""
    content = scored([1.5])
    messages = pa.ipc.MessageReader.open_stream(content)
    messages.read_next_message()
    head = messages.read_next_message().metadata.to_pybytes()
    words = [head[place : place + 8] for place in range(0, len(head), 8)]
    one, many = (1).to_bytes(8, "little"), n.to_bytes(8, "little")
    assert words.count(one) >= 3  # of the batch, and of each column
    return content.replace(head, b"".join(many if word == one else word for word in words))


def unusable():
    """Answers for two points of a server that is wrong, or means harm."""
    two = [1.0, 2.0]
    flags = pa.array([False, True])
    return {
        "a row less": scored([1.0]),
        "a row more": scored([1.0, 2.0, 3.0]),
        "nothing": b"",
        "zeros": b"\x00" * 100,
        "json": {"outlier_score": [1]},
        "cut short": scored(two)[:-60],
        "two batches": scored(
            two,
            changed=lambda columns: {
                name: pa.chunked_array([[v] for v in values.to_pylist()]) for name, values in columns.items()
            },
        ),
        "more rows than bytes": more_rows_than_bytes(2),
        "nan": scored([1.0, float("nan")]),
        "null": scored([1.0, None]),
        "no flags": scored(two, changed=lambda columns: {"outlier_score": columns["outlier_score"]}),
        "null flag": scored(two, changed=lambda columns: columns | {"outside_bounds": pa.array([None, True])}),
        "another type": scored(two, changed=lambda columns: columns | {"outlier_score": pa.array([1, 2])}),
        "half as wide": scored(two, changed=lambda c: c | {"outlier_score": c["outlier_score"].cast(pa.float32())}),
        "another column": scored(two, changed=lambda columns: columns | {"more": flags}),
        "predictions as text": scored(two, changed=lambda columns: columns | {"prediction": pa.array(["1", "1"])}),
        "a dictionary": scored(
            two, changed=lambda columns: columns | {"prediction": pa.array([1, 1]).dictionary_encode()}
        ),
        "compressed": scored(two, compression="zstd"),
        "too many bytes": scored(two) + bytes(1 << 21),
    }


@pytest.mark.parametrize("wrong", unusable())
def test_an_answer_that_does_not_fit_the_points_is_refused(wrong):
    with (
        faked((200, {}, described("0")), always=(200, {}, unusable()[wrong])) as (url, _),
        pytest.raises(ServerError, match="the server's answer cannot be used"),
    ):
        Client(url, "m").outlier_scores([[1.0], [2.0]])


def test_no_memory_of_the_client_is_taken_for_scores():
    """A batch that declares 90,000 rows over the bytes of one."""
    answer = Answer(more_rows_than_bytes(90_000), {})
    with pytest.raises(ServerError, match="cannot be used"):
        scores_of_answer(answer, 90_000)


def test_an_answer_as_a_server_gives_it_is_used():
    more = scored([1.0, 2.5], changed=lambda columns: columns | {"prediction": pa.array([1, -1])})
    for content in (scored([1.0, 2.5]), more):
        release, scores = scores_of_answer(Answer(content, {}), 2)
        assert (release, scores.tolist()) == ("0", [1.0, 2.5])


def test_a_client_is_shared_by_threads_and_by_forks():
    with faked((200, {}, described("0")), always=Releases()) as (url, _):
        client, found = Client(url, "m", timeout=20), {}

        def ask(number):
            found[number] = [client.score_one({"age": number + i}) for i in range(20)]

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == {number: [number + i for i in range(20)] for number in range(8)}
        before = client._connection._connections()
        client._connection._made_in = os.getpid() + 1  # as after a fork
        assert client.score_one({"age": 5}) == 5
        assert client._connection._connections() is not before


def test_a_client_is_not_pickled_and_says_what_it_cannot_do():
    with faked(always=(200, {}, described("0"))) as (url, _), Client(url, "m", key=KEY) as client:
        with pytest.raises(TypeError, match="holds a key"):
            pickle.dumps(client)
        assert KEY not in repr(client)
        assert KEY not in repr(client._connection)
        for name in ("save", "export_scores", "walk", "count_intervals", "model_"):
            assert not hasattr(client, name)
            with pytest.raises(AttributeError, match="Load the model file"):
                getattr(client, name)
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            client.nonsense  # noqa: B018
        assert not hasattr(client, "fit")
