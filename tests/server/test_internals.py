"""What the server and the client use of other libraries beyond their documentation; that of uvicorn is in ``test_uvicorn.py``."""

import http.client
import inspect
from importlib.metadata import version

import pytest
import urllib3
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from urllib3.util import Retry, Timeout

from dpoutlier.client import transport
from dpoutlier.server import metrics

TESTED = {"prometheus-client": "0.26.0", "urllib3": "2.8.0"}


def said(package, what):
    return f"{package} {version(package)} has no {what}; dpoutlier was tested with {TESTED[package]}"


def histogram():
    registry = CollectorRegistry()
    made = Histogram("seconds", "Seconds.", ["route"], buckets=metrics.BUCKETS, registry=registry)
    return made.labels("r"), registry


@pytest.mark.parametrize("name", ["_sum", "_buckets"])
def test_a_histogram_has_values_that_can_be_added_to(name):
    found = getattr(histogram()[0], name, None)
    values = found if isinstance(found, list) else [found]
    assert all(hasattr(one, "inc") for one in values), said("prometheus-client", f"Histogram.{name} with inc()")


def test_what_is_added_to_a_histogram_is_in_its_text():
    one, registry = histogram()
    assert len(one._buckets) == len(metrics.BUCKETS) + 1
    one._sum.inc(0.5)
    one._buckets[0].inc(2)
    one._buckets[-1].inc(1)
    text = generate_latest(registry).decode()
    for line in (
        f'seconds_bucket{{le="{metrics.BUCKETS[0]}",route="r"}} 2.0',
        'seconds_bucket{le="+Inf",route="r"} 3.0',
        'seconds_count{route="r"} 3.0',
        'seconds_sum{route="r"} 0.5',
    ):
        assert line in text


def test_connections_read_answers_with_the_class_that_they_name():
    for kind in (urllib3.connection.HTTPConnection, urllib3.connection.HTTPSConnection):
        assert issubclass(kind, http.client.HTTPConnection), said("urllib3", f"{kind.__name__} of http.client")
        assert kind.response_class is http.client.HTTPResponse, said("urllib3", f"{kind.__name__}.response_class")
    assert issubclass(transport._Response, http.client.HTTPResponse)
    for pool in (urllib3.HTTPConnectionPool, urllib3.HTTPSConnectionPool):
        assert hasattr(pool, "ConnectionCls"), said("urllib3", f"{pool.__name__}.ConnectionCls")


def test_an_answer_is_read_from_a_stream_that_can_be_replaced():
    class Socket:
        def makefile(self, mode):
            assert mode == "rb"
            return made

    made = object()
    answer = http.client.HTTPResponse(Socket())
    assert answer.fp is made
    assert hasattr(answer, "length")
    assert list(inspect.signature(http.client.HTTPResponse.begin).parameters) == ["self"]


def test_each_attempt_clones_its_timeout():
    assert hasattr(Timeout, "clone"), said("urllib3", "Timeout.clone")
    cloned = []

    class Watched(Timeout):
        def clone(self):
            cloned.append(self)
            return super().clone()

    given = Watched(1)
    with pytest.raises(urllib3.exceptions.NewConnectionError):
        urllib3.HTTPConnectionPool("127.0.0.1", 1).request("GET", "/", timeout=given, retries=False)
    assert given in cloned


@pytest.mark.parametrize("name", ["new", "increment", "get_retry_after", "get_backoff_time"])
def test_retries_are_made_by_methods_that_can_be_replaced(name):
    assert hasattr(Retry, name), said("urllib3", f"Retry.{name}")
