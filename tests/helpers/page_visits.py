"""Visits to the page for people in a real browser, and what the tests of it share."""

import re
import shutil
import socket
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

import dpoutlier
from dpoutlier import Category

CHROMIUM = shutil.which("chromium")
FILES = Path(dpoutlier.__file__).parent / "server" / "page"
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="the page is tested in chromium, which is not installed")

FEATURES = {
    "age": (18, 100),
    "sex": Category(["f", "m"]),
    "bmi": (12, 60),
    "glucose": (2, 25),
    "smoker": Category(["never", "former", "current"]),
}
MARKUP = ["<img src=x onerror=alert(1)>", 'a, "b" <b>bold</b>']
MAX_ROWS = 8000
MODELS = ["markup", "nameless", "patients", "plain", "replaced", "single"]


def made_patients(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.gamma(9, 6, n).clip(18, 99)
    frame = pd.DataFrame(
        {
            "patient": [f"P{i}" for i in range(n)],
            "age": age.round().astype(int),
            "sex": rng.choice(["f", "m"], n),
            "bmi": rng.normal(26, 4, n).clip(14, 58).round(1),
            "glucose": np.exp(rng.normal(1.6, 0.15, n)).round(2),
            "smoker": rng.choice(["never", "former", "current"], n),
        }
    )
    frame.loc[:: n // 12, "bmi"] = 70.5  # outside the bounds
    return frame


WATCH = """addEventListener("securitypolicyviolation", (e) => console.error("policy " + e.violatedDirective));
    const [real, sent, answers] = [fetch, (window.sent = []), (window.answers = [])];
    window.fetch = async (path, options) => {
        if (path.includes("/score")) sent.push([await options.body.text(), options.body.size]);
        const asked = performance.now();
        const answer = await real(path, options);
        const wait = answer.headers.get("Retry-After");
        answers.push({ path, status: answer.status, wait, asked, answered: performance.now() });
        return answer;
    };"""


@dataclass
class Visit:
    """A page with all that it asked for and complained of."""

    page: object
    url: str
    asked: list = field(default_factory=list)
    complaints: list = field(default_factory=list)
    expected: set = field(default_factory=lambda: {401})
    given: int = 0

    def __post_init__(self):
        self.listeners = {
            "request": lambda request: self.asked.append(request),  # noqa: PLW0108 - a builtin takes no mark
            "pageerror": lambda error: self.complaints.append(str(error)),
            "console": self._console,
        }
        for event, listener in self.listeners.items():
            self.page.on(event, listener)

    def leave(self):
        """Leave a blank page to the next visit. Nothing may have been stored."""
        opened = self.page.url.startswith(self.url)
        stored = opened and self.page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]")
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.goto("about:blank")
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)
        assert stored in (False, [0, 0, ""])

    def _console(self, message):
        status = re.match(r"Failed to load resource: the server responded with a status of (\d+)", message.text)
        if message.type in {"error", "warning"} and not (status and int(status[1]) in self.expected):
            self.complaints.append(message.text)

    def check(self):
        assert self.complaints == []
        assert [one.url for one in self.asked if not one.url.startswith((self.url, "blob:" + self.url))] == []

    def open(self, key=None, model=None):
        self.page.goto(self.url)
        if key is not None:
            self.page.fill("#key", key)
            self.page.click("#key-form [type=submit]")
        if model is not None:
            self.page.select_option("#model-select", model)
            expect(self.page.locator("#model-name")).to_have_text(model)
        return self.page

    def give(self, content, name="points.csv"):
        content = content.encode() if isinstance(content, str) else content
        self.page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})

    def score(self, content, name=None):
        """Give a file, under a new name unless one is given, and wait for its result."""
        self.given += 1
        name = name or f"points {self.given}.csv"
        self.give(content, name)
        expect(self.page.locator("#points-title")).to_have_text(name)
        expect(self.page.locator("#result")).to_be_visible()

    def sent(self):
        """The bodies of the requests for scores: text, and number of bytes."""
        return [(text, size) for text, size in self.page.evaluate("window.sent")]


def rows_shown(page):
    """The numbers of the rows in the table, from 0, in the order shown."""
    return page.eval_on_selector_all("#table-body tr", "lines => lines.map((line) => Number(line.dataset.row))")


def summary(page):
    return page.locator("#summary").inner_text().replace("\u00a0", " ")


@contextmanager
def overheard(server):
    """An address in front of the server, and for each connection to it all that was sent, byte by byte."""

    def carry(source, target, note=None):
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if note is not None:
                    note.extend(data)
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def serve(listening):
        with suppress(OSError):
            while True:
                near = listening.accept()[0]
                far = socket.create_connection(("127.0.0.1", server.port))
                ends.extend((near, far))
                note = bytearray()
                notes.append(note)
                for way in ((near, far, note), (far, near)):
                    threading.Thread(target=carry, args=way, daemon=True).start()

    ends, notes = [], []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", notes
        listening.shutdown(socket.SHUT_RDWR)
    for one in ends:
        one.close()


def saved(page, button):
    with page.expect_download() as found:
        page.click(button)
    return found.value.suggested_filename, Path(found.value.path()).read_bytes()
