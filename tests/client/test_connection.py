"""Requests of a client: what is tried again and what is not, and that the key goes to one place only."""

import logging
import socket
import ssl
import threading
import time
from contextlib import suppress

import pytest

from dpoutlier import Client, FalseAlarms
from dpoutlier.client.connection import Connection
from dpoutlier.client.transport import MAX_RETRIES, RetryUntil
from dpoutlier.exceptions import InvalidParameterError, ServerError, ThresholdNotSetError, UnsafeWarning
from fake_server import KEY, Lost, described, faked, refusal
from tls import BehindTLS, certificate

OK = (200, {}, {"models": []})


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("DPOUTLIER_KEY", raising=False)


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


@pytest.mark.parametrize("value", ["soon", "9" * 5000, "Wed, 99 Xyz 99999 99:99:99 GMT", "-1", "0"])
def test_a_retry_after_that_cannot_be_read_is_ignored(value):
    with faked(refusal(503, Retry_After=value), always=OK) as (url, asked):
        assert connection(url).get("/").json() == {"models": []}
    assert len(asked) == 2


def test_a_refusal_is_final_even_if_it_asks_to_come_back():
    with faked(refusal(413, "too-large", Retry_After="0"), always=OK) as (url, asked), pytest.raises(ServerError):
        connection(url).get("/")
    assert len(asked) == 1


def test_an_answer_that_is_lost_half_way_is_asked_for_again():
    with faked((200, {"Content-Length": "99", "Connection": "close"}, b"{"), always=OK) as (url, asked):
        made = connection(url)
        assert made.get("/").json() == {"models": []}
    assert len(asked) == 2


def test_many_retries_end_before_python_does(monkeypatch):
    """However long the timeout is: each retry is a call within the one before."""
    monkeypatch.setattr(RetryUntil, "get_backoff_time", lambda _: 0)
    with (
        faked(always=(503, {}, b"")) as (url, asked),
        pytest.raises(ServerError, match="status 503"),
    ):
        connection(url, timeout=600).get("/")
    assert len(asked) == MAX_RETRIES + 1


@pytest.mark.parametrize(
    ("size", "message"), [("ffffffffff", "it is too large"), ("-5", "was lost before the answer was complete")]
)
def test_a_chunk_of_impossible_size_is_an_error_of_the_server(size, message):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with suppress(OSError):
                while True:
                    peer, _ = listening.accept()
                    with peer:
                        peer.recv(65536)
                        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        peer.sendall(head + size.encode() + b"\r\n{}")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(ServerError, match=message):
            connection(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=1).get("/")
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("status", [200, 503])
@pytest.mark.parametrize("head", ["Content-Length: 99999999999999", "Transfer-Encoding: chunked", "Connection: close"])
def test_the_size_of_an_answer_is_bounded_however_it_is_sent(status, head):
    """An answer that is never used is not read without end either."""
    sent = 0
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            nonlocal sent
            peer, _ = listening.accept()
            with peer, suppress(OSError):
                peer.recv(65536)
                peer.sendall(f"HTTP/1.1 {status} X\r\n{head}\r\n\r\n".encode())
                while sent < 2**27:
                    peer.sendall(b"10000\r\n" + b" " * 2**16 + b"\r\n" if "chunked" in head else b" " * 2**16)
                    sent += 2**16

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ServerError, match="too large"):
            connection(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=20).get("/")
        thread.join()
    assert sent < 2**26


@pytest.mark.parametrize("line", ["Bearer {key}", "HTTP/1.1 200 OK\r\n{key}", "HTTP/1.1 {key} OK", "{key} 200 OK"])
def test_a_key_that_a_server_sends_back_is_in_no_log_and_no_error(line, caplog):
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            for _ in range(4):
                with suppress(OSError):
                    peer, _ = listening.accept()
                    with peer:
                        peer.recv(65536)
                        peer.sendall(line.format(key=KEY).encode() + b"\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(ServerError) as caught:
            connection(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=3).get("/")
    assert KEY not in str(caught.value)
    assert KEY not in caplog.text


def test_a_server_that_stays_busy_is_given_up_at_the_timeout():
    with faked(OK, always=refusal(503)) as (url, asked):
        made = connection(url, timeout=1)
        made.get("/")
        start = time.monotonic()
        with pytest.raises(ServerError, match="come back later"):
            made.get("/")
        assert 0.3 < time.monotonic() - start < 1.5
    assert len(asked) > 4


def test_an_unreachable_server_fails_fast():
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
            with pytest.raises(ServerError, match=r"did not send a complete answer within 0.5 seconds"):
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
        with pytest.raises(ServerError, match=r"did not send a complete answer within 0.5 seconds"):
            connection(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=0.5).get("/")
        assert time.monotonic() - start < 2
        thread.join()


def test_json_that_is_too_deep_or_too_large_is_refused():
    with (
        faked(always=(200, {}, b'{"id":' + b"[" * 200_000 + b"]" * 200_000 + b"}")) as (url, _),
        pytest.raises(ServerError, match="not a JSON object"),
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


FALSE_ALARMS = {"expected": 0.05, "lower": 0.01, "upper": 0.1, "level": 0.9, "trusted": True}
P_VALUES = {"levels": [0.5, 1.0], "values": [1.0, 0.01]}


@pytest.mark.parametrize(
    "change",
    [
        {"release": "a\x1b[31m"},
        {"detector": "a\nb"},
        {"statement": [3]},
        {"limits": []},
        {"false_alarms": FALSE_ALARMS, "threshold": None},
        *({"false_alarms": FALSE_ALARMS | wrong} for wrong in ({"upper": 0.0}, {"lower": "nan"}, {"level": 2})),
        {"false_alarms": {"expected": 0.1}},
        *({"p_values": P_VALUES | wrong} for wrong in ({"levels": [1.0]}, {"levels": [1, 0.5]}, {"values": [1, 0]})),
        {"p_values": {"levels": [], "values": []}},
        {"p_values": {"levels": [0.5, "inf"], "values": [1, 1]}},
        {"p_values": []},
    ],
    ids=repr,
)
def test_an_invalid_description_is_refused(change):
    with (
        faked(always=(200, {}, described("0") | change)) as (url, _),
        pytest.raises(ServerError, match="cannot be read"),
    ):
        Client(url, "m")


@pytest.mark.parametrize("change", [{}, {"false_alarms": None, "p_values": None}])
def test_an_older_server_says_nothing_of_false_alarms_and_p_values(change):
    with faked(always=(200, {}, described("0") | change)) as (url, _):
        client = Client(url, "m")
        assert client._false_alarms() is None
        with pytest.raises(ThresholdNotSetError, match="no p-values"):
            client.p_values([[1.0]])
    with faked(always=(200, {}, described("0") | {"false_alarms": FALSE_ALARMS, "p_values": P_VALUES})) as (url, _):
        client = Client(url, "m")
        assert client._false_alarms() == FalseAlarms(0.05, 0.01, 0.1, 0.9, 5.0)
        assert client._p_table().values.tolist() == [1.0, 0.01]


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
    ("url", "reason"),
    [
        ("host:8765", "url must be"),
        ("ftp://host", "url must be"),
        ("https://", "url must be"),
        (3, "url must be"),
        ("https://user:secret@host", "without a password"),
        ("https://host/?key=secret", "without a password"),
    ],
)
def test_urls_that_cannot_be_used_are_refused(url, reason):
    with pytest.raises(InvalidParameterError, match=reason) as caught:
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


def test_something_else_than_a_dpoutlier_server_is_reported():
    for content in (b"<html>", {"hello": 1}, {"models": 3}, {"models": [3]}):
        with faked(always=(200, {}, content)) as (url, _), pytest.raises(ServerError, match="dpoutlier server"):
            Client(url)
    for content in ({}, {"id": "m"}, []):
        with faked(always=(200, {}, content)) as (url, _), pytest.raises(ServerError, match="dpoutlier server"):
            Client(url, "m")


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
                    with pytest.raises(ServerError, match="could not prove its identity"):
                        connection(https, ca=cert).get("/")
                with pytest.raises(ServerError, match="could not prove its identity"):
                    connection(https).get("/")
            assert not asked
