"""Requests of a client: what is tried again and what is not, and that the key goes to one place only."""

import os
import pickle
import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest

from dpoutlier import Client, DPMarginals
from dpoutlier.client.bodies import scores_of_answer
from dpoutlier.client.connection import Answer, Connection
from dpoutlier.exceptions import InvalidParameterError, ServerError, UnsafeWarning
from fake_server import Lost, faked

KEY = "dpo_abcdefghij_" + "S" * 43
OK = (200, {}, {"models": []})


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("DPOUTLIER_KEY", raising=False)


def refusal(status, code="unavailable", message="come back later", **headers):
    return (
        status,
        {name.replace("_", "-"): value for name, value in headers.items()},
        {"error": {"code": code, "message": message}},
    )


def connection(url, timeout=5, **arguments):
    return Connection(url, **{"key": KEY, "ca": None, "timeout": timeout} | arguments)


@pytest.mark.parametrize(
    "trouble", [Lost, refusal(503), refusal(429, Retry_After="0"), (502, {}, b"<html>"), refusal(504)]
)
def test_what_may_pass_is_tried_again(trouble):
    with faked(trouble, trouble, OK) as (url, asked):
        assert connection(url).get("/v1/models").json() == {"models": []}
    assert len(asked) == 3
    assert len({(one.method, one.path, one.body) for one in asked}) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 415, 431, 500])
def test_a_refusal_is_final_and_tells_status_code_and_the_servers_own_words(status):
    answer = refusal(status, "some-code", "Because\x1b[31m of\nthis.")
    with faked(answer, always=OK) as (url, asked), pytest.raises(ServerError) as caught:
        connection(url).get("/v1/models")
    assert (caught.value.status, caught.value.code) == (status, "some-code")
    assert str(caught.value) == "Because [31m of this."  # no letter that a terminal would obey
    assert len(asked) == 1


def test_a_refusal_without_words_names_the_status():
    for content in (b"<html>", b"[]", b'{"error": 3}', b'{"error": {"message": 4}}', b"\xff"):
        with faked(always=(500, {}, content)) as (url, _), pytest.raises(ServerError, match="answered with status 500"):
            connection(url).get("/")


def test_retry_after_is_honoured_up_to_the_timeout():
    with faked(refusal(429, Retry_After="1"), always=OK) as (url, asked):
        start = time.monotonic()
        connection(url).get("/")
        assert 1 <= time.monotonic() - start < 3
    assert len(asked) == 2
    with faked(refusal(429, "too-many-requests", "slower", Retry_After="30"), always=OK) as (url, asked):
        start = time.monotonic()
        with pytest.raises(ServerError, match="slower") as caught:
            connection(url, timeout=2).get("/")
        assert time.monotonic() - start < 1  # it would be too late anyway
    assert caught.value.status == 429
    assert len(asked) == 1


def test_a_server_that_stays_busy_is_given_up_at_the_timeout():
    with faked(OK, always=refusal(503)) as (url, asked):
        made = connection(url, timeout=1)
        made.get("/")
        start = time.monotonic()
        with pytest.raises(ServerError, match="come back later"):
            made.get("/")
        assert 0.3 < time.monotonic() - start < 1.5
    assert len(asked) > 4


def test_nobody_there_is_told_soon_unless_somebody_was():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(ServerError, match="cannot be reached") as caught:
            connection(url, timeout=60).get("/")
        assert time.monotonic() - start < 3
    assert caught.value.status is None
    with faked(always=OK) as (url, _):
        made = connection(url, timeout=1.5)
        made.get("/")
    start = time.monotonic()
    with pytest.raises(ServerError, match=r"cannot be reached|lost"):
        made.get("/")
    assert time.monotonic() - start > 0.5


def test_a_server_that_comes_back_is_found_again():
    with faked(always=OK) as (url, _):
        made = connection(url, timeout=20)
        made.get("/")
    port = int(url.rsplit(":", 1)[1])
    answered = []
    asking = threading.Thread(target=lambda: answered.append(made.get("/").json()))
    asking.start()
    time.sleep(0.3)
    listening = socket.create_server(("127.0.0.1", port))
    with listening:
        peer, _ = listening.accept()
        with peer:
            peer.recv(65536)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            asking.join()
    assert answered == [{}]


def test_a_server_that_never_ends_its_answer_is_given_up():
    for drip in (False, True):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            stop = threading.Event()

            def serve(drip=drip, listening=listening, stop=stop):
                peer, _ = listening.accept()
                with peer:
                    peer.recv(65536)
                    peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    while not stop.wait(0.05):
                        if drip:
                            try:
                                peer.sendall(b"1\r\n \r\n")
                            except OSError:
                                return

            thread = threading.Thread(target=serve)
            thread.start()
            start = time.monotonic()
            with pytest.raises(ServerError, match=r"did not answer within 0.5 seconds"):
                connection(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.5).get("/")
            assert time.monotonic() - start < 3
            stop.set()
            thread.join()


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n", b""])
def test_the_timeout_is_for_all_of_an_answer_however_slowly_it_comes(head):
    """Its first line, and its headers, a letter at a time."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            peer, _ = listening.accept()
            with peer, suppress(OSError):
                peer.recv(65536)
                peer.sendall(head)
                for _ in range(100):
                    peer.sendall(b"x")
                    time.sleep(0.05)

        thread = threading.Thread(target=serve)
        thread.start()
        start = time.monotonic()
        with pytest.raises(ServerError, match=r"did not answer within 0.5 seconds"):
            connection(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.5).get("/")
        assert time.monotonic() - start < 2
        thread.join()


def test_json_that_is_too_deep_or_too_large_is_refused():
    with (
        faked(always=(200, {}, b'{"id":' + b"[" * 200_000 + b"]" * 200_000 + b"}")) as (url, _),
        pytest.raises(ServerError, match="something else than a JSON object"),
    ):
        Client(url, "m")
    with faked(always=(500, {}, b"[" * 200_000)) as (url, _), pytest.raises(ServerError, match="status 500"):
        Client(url, "m")
    with (
        faked(always=(200, {}, b'{"id": "' + b"m" * 2**25 + b'"}')) as (url, _),
        pytest.raises(ServerError, match="too large"),
    ):
        Client(url, "m")
    with faked((200, {}, described("0")), always=(200, {}, b" " * 2**21)) as (url, _):
        client = Client(url, "m")
        for ask in (client.outlier_scores, client.explain):
            with pytest.raises(ServerError, match="too large"):
                ask([[1.0]])


@pytest.mark.parametrize("name", ["../../other", "a?b", "", None, "a\x1b[31m", "m" * 65])
def test_a_name_that_a_server_gives_is_checked_before_it_is_asked_for(name):
    with (
        faked(always=(200, {}, {"models": [{"id": name}]})) as (url, asked),
        pytest.raises(ServerError, match="cannot be used"),
    ):
        Client(url)
    assert [one.path for one in asked] == ["/v1/models"]


@pytest.mark.parametrize("change", [{"release": "a\x1b[31m"}, {"detector": "a\nb"}, {"statement": [3]}, {"limits": []}])
def test_a_description_that_is_none_is_refused(change):
    with (
        faked(always=(200, {}, described("0") | change)) as (url, _),
        pytest.raises(ServerError, match="cannot be read"),
    ):
        Client(url, "m")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status):
    with (
        faked(always=OK) as (other, stolen),
        faked(always=(status, {"Location": f"{other}/v1/models"}, b"")) as (url, asked),
        pytest.raises(ServerError, match="another address") as caught,
    ):
        connection(url).get("/v1/models")
    assert caught.value.status == status
    assert len(asked) == 1
    assert not stolen


def test_the_key_is_in_one_header_and_in_no_text(monkeypatch, tmp_path):
    with faked(always=(200, {}, {"models": [{"id": "a"}, {"id": "b"}]})) as (url, asked):
        made = connection(url)
        made.get("/v1/models")
        with pytest.raises(InvalidParameterError, match=r"exactly one.*a, b") as caught:
            Client(url, key=KEY)
        assert KEY not in repr(made) + str(made) + str(caught.value) + repr(caught.value)
        assert asked[0].headers["Authorization"] == f"Bearer {KEY}"
        monkeypatch.setenv("DPOUTLIER_KEY", KEY + "x\n")
        connection(url, key=None).get("/")
        assert asked[-1].headers["Authorization"] == f"Bearer {KEY}x"
        monkeypatch.delenv("DPOUTLIER_KEY")
        connection(url, key=None).get("/")
        assert "Authorization" not in asked[-1].headers
    for wrong in ("", "a\nHost: b", "k\u00e9y", 3):
        with pytest.raises(InvalidParameterError, match="key must be one line") as caught:
            connection("https://host:1", key=wrong)
        assert str(wrong) not in str(caught.value) or not wrong or wrong == 3


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("host:8765", "url must be"),
        ("ftp://host", "url must be"),
        ("https://", "url must be"),
        (3, "url must be"),
        ("https://user:secret@host", "without a password"),
        ("https://host/?key=secret", "without a password"),
    ],
)
def test_urls_that_cannot_be_used_are_refused(url, told):
    with pytest.raises(InvalidParameterError, match=told) as caught:
        connection(url)
    assert "secret" not in str(caught.value)


def test_wrong_arguments_are_refused(tmp_path):
    for timeout in (0, -1, "3", True, float("nan"), float("inf")):
        with pytest.raises(InvalidParameterError, match="timeout must be"):
            connection("https://host", timeout=timeout)
    (tmp_path / "no.pem").write_text("nothing")
    for ca in (tmp_path / "absent", tmp_path / "no.pem", 3):
        with pytest.raises(InvalidParameterError, match="ca must be"):
            connection("https://host", ca=ca)
    for model in ("../x", "", "a" * 65, "a/b", 3, "a?b"):
        with pytest.raises(InvalidParameterError, match="model must be the id"):
            Client("https://host", model)
    with pytest.warns(UnsafeWarning, match="not encrypted"):
        connection("http://example.invalid:80")


def test_a_path_before_the_routes_is_kept():
    with faked(always=OK) as (url, asked):
        connection(url + "/behind/a/proxy/").get("/v1/models")
    assert asked[0].path == "/behind/a/proxy/v1/models"


def test_something_else_than_a_dpoutlier_server_is_told():
    for content in (b"<html>", {"hello": 1}, {"models": 3}, {"models": [3]}):
        with faked(always=(200, {}, content)) as (url, _), pytest.raises(ServerError, match="dpoutlier server"):
            Client(url)
    for content in ({}, {"id": "m"}, []):
        with faked(always=(200, {}, content)) as (url, _), pytest.raises(ServerError, match="dpoutlier server"):
            Client(url, "m")


def certificate(folder, name="127.0.0.1"):
    """A key and a certificate for this machine, signed by itself."""
    paths = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-keyout", paths[0], "-out", paths[1], "-subj", "/CN=test"),
            *("-addext", f"subjectAltName=IP:{name}"),
        ],
        check=True,
        capture_output=True,
    )
    return paths


def test_a_certificate_must_be_signed_by_the_authority_and_name_the_host(tmp_path):
    (tmp_path / "other").mkdir()
    for folder, name, works in ((tmp_path, "127.0.0.1", True), (tmp_path / "other", "127.0.0.2", False)):
        key, cert = certificate(folder, name)
        with faked(always=OK) as (url, asked):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(cert, key)
            port = int(url.rsplit(":", 1)[1])
            with BehindTLS(port, context) as https:
                if works:
                    connection(https, ca=cert).get("/")
                    assert asked
                    asked.clear()
                else:
                    with pytest.raises(ServerError, match="could not prove who it is"):
                        connection(https, ca=cert).get("/")
                with pytest.raises(ServerError, match="could not prove who it is"):
                    connection(https).get("/")
            assert not asked


class BehindTLS:
    """Before a port of this machine, another one that speaks TLS."""

    def __init__(self, port, context):
        self.port, self.context = port, context

    def __enter__(self):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        return f"https://127.0.0.1:{self.listening.getsockname()[1]}"

    def __exit__(self, *_):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join()

    def _serve(self):
        while True:
            try:
                peer, _ = self.listening.accept()
            except OSError:
                return
            try:
                with (
                    self.context.wrap_socket(peer, server_side=True) as inner,
                    socket.create_connection(("127.0.0.1", self.port)) as plain,
                ):
                    plain.sendall(inner.recv(65536).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
                    while piece := plain.recv(65536):
                        inner.sendall(piece)
            except OSError:
                peer.close()


# Releases that are replaced -----------------------------------------------------------------------------------------------


def described(release, rows=3, **changes):
    """What a server tells of marginals of one feature, with a limit of so many rows."""
    detector = DPMarginals(1, bounds={"age": (0, 100)}, bins=3).fit([[3.0]])
    statement = detector.privacy_statement()
    feature = {"name": "age", "kind": "number", "lower": 0.0, "upper": 100.0, "levels": None, "ordered": None}
    return {
        "id": "m",
        "release": release,
        "detector": "DPMarginals",
        "publishable": True,
        "named": True,
        "threshold": 5.0,
        "target_fpr": None,
        "features": [feature | {"missing": False, "numeric": None, "other": None}],
        "person": None,
        "limits": {"rows": rows, "bytes": 10**6, "explain_rows": 2},
        "statement": statement.to_dict(),
        "statement_text": str(statement),
    } | changes


def scored(scores, release="0", *, changed=None, **options):
    """A body with scores, or with other columns."""
    columns = {"outlier_score": pa.array(scores, pa.float64()), "outside_bounds": pa.array([False] * len(scores))}
    table = pa.table(columns if changed is None else changed(columns)).replace_schema_metadata({"release": release})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


class Releases:
    """A server whose scores are the ages plus the number of the release; it turns to the next one after so many score requests.

    The requests that are ``late`` come to a worker who is yet to turn.
    """

    def __init__(self, *turns, late=()):
        self.turns, self.asked, self.late = list(turns), 0, late

    def now(self):
        return sum(self.asked >= turn for turn in self.turns)

    def __call__(self, request):
        if request.method == "GET":
            return 200, {}, described(str(self.now()), threshold=5.0 + self.now())
        told = self.now() - (self.asked in self.late)
        self.asked += 1
        ages = pa.ipc.open_stream(request.body).read_all().column("age").to_numpy()
        return 200, {}, scored(ages + 1000 * told, str(told))


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
        told = described("0", limits={"rows": rows, "bytes": size, "explain_rows": 1})
        with faked((200, {}, told), always=server) as (url, asked):
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
        for name in ("save", "export_scores", "walk", "count_intervals", "fitted_model", "model_"):
            assert not hasattr(client, name)
            with pytest.raises(AttributeError, match="Load the model file"):
                getattr(client, name)
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            client.nonsense  # noqa: B018
        assert not hasattr(client, "fit")
