"""What the page is made of."""

import re

from page_visits import FILES


def test_the_files_hold_nothing_inline_and_name_no_other_host():
    names = {file.name for file in FILES.iterdir() if file.is_file()}
    assert {"index.html", "page.css", "main.js", "favicon.svg"} <= names
    for file in FILES.iterdir():
        text = file.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            file
        )
        assert not re.search(r"localStorage|sessionStorage|indexedDB|document\.cookie", text), file
        assert [link for link in re.findall(r"\w+://[^\s\"'`)]*", text) if link != "http://www.w3.org/2000/svg"] == []
    html = (FILES / "index.html").read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", html)
    for linked in re.findall(r"static/([\w.]+)", html):
        assert linked in names
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    for script in FILES.glob("*.js"):
        for wanted in re.findall(r'\$\("([\w-]+)"\)', script.read_text("utf-8")):
            assert wanted in ids, f"{script.name} looks for {wanted}"


def test_the_key_field_shows_how_a_key_begins():
    (field,) = re.findall(r'<input id="key"[^>]*>', (FILES / "index.html").read_text("utf-8"))
    assert 'placeholder="dpo_…"' in field
