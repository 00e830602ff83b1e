"""Checks pages that tools write, and the traces in them."""

import gzip
import json
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from itertools import pairwise
from typing import TypeAlias, cast

VOID = {"meta", "use", "path", "br", "rect"}
"""Elements that may have no end tag."""

Event: TypeAlias = "Mapping[str, object]"

SHARED = {"ph": str, "pid": int, "tid": int, "name": str, "args": dict}
TIMED = {**SHARED, "cat": str, "ts": float, "dur": float}
"""All that metadata and complete events of the Trace Event Format have."""


class Reader(HTMLParser):
    """Checks that tags are balanced, and collects attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.values: list[tuple[str, str]] = []
        self.tags = Counter[str]()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.values += ((name, value or "") for name, value in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.values += ((name, value or "") for name, value in attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data

    def named(self, name: str) -> list[str]:
        """The values of an attribute."""
        return [value for key, value in self.values if key == name]


def expect_one_file(text: str) -> None:
    """A page is well formed, small, light or dark, and names no other file."""
    reader = Reader(text)
    assert not reader.open
    names = reader.named("id")
    assert [name for name, count in Counter(names).items() if count > 1] == []
    links = reader.named("href") + reader.named("src")
    inside = {link[1:] for link in links if link.startswith("#")}
    assert inside <= set(names)
    assert len(inside) > 5
    assert len(text.encode()) < 1_000_000
    assert all(link.startswith(("#", "data:")) for link in links)
    assert re.findall(r"url\((?!#)|https?://|@import", text) == []
    assert "prefers-color-scheme: dark" in text
    plots = "".join(re.findall(r"(?s)<svg.*?</svg>", text))
    assert "var(--c0)" in plots
    assert set(re.findall(r"#[0-9a-f]{6}\b", plots)) <= {"#000000", "#ffffff"}


def trace_in(text: str) -> object:
    """Return the trace that a page holds."""
    linked = re.search(r"data:application/gzip;base64,([^\"]+)", text)
    assert linked is not None
    return json.loads(gzip.decompress(b64decode(linked[1])))


def expect_a_trace(trace: object) -> Sequence[Event]:
    """
    Return the complete events of a trace in the Trace Event Format.

    They are sorted; what overlaps in a row is inside each other; metadata names the
    processes and rows once.
    """
    whole = cast(Mapping[str, object], trace)
    assert whole.keys() == {"traceEvents", "displayTimeUnit"}
    assert whole["displayTimeUnit"] in ("ms", "ns")
    events = cast(Sequence[Event], whole["traceEvents"])
    timed = [event for event in events if event["ph"] == "X"]
    named = [event for event in events if event["ph"] == "M"]
    assert [*named, *timed] == list(events)
    assert {event["name"] for event in named} <= {"process_name", "thread_name"}
    assert {event["pid"] for event in timed} <= {event["pid"] for event in named}
    keys = Counter((event["name"], event["pid"], event["tid"]) for event in named)
    assert set(keys.values()) == {1}
    for event in named:
        _expect_fields(event, SHARED)
        (name,) = cast(Mapping[str, object], event["args"]).values()
        assert isinstance(name, str)
        assert "name" in cast(Mapping[str, object], event["args"])
    for event in timed:
        _expect_fields(event, TIMED)
        assert cast(float, event["dur"]) > 0
    starts = [cast(float, event["ts"]) for event in timed]
    assert starts == sorted(starts)
    assert starts[0] == 0
    rows: dict[object, list[Event]] = {}
    for event in timed:
        rows.setdefault((event["pid"], event["tid"]), []).append(event)
    for row in rows.values():
        for one, after in pairwise(row):
            end, start = _end(one), cast(float, after["ts"])
            assert end <= start + 1e-6 or _end(after) <= end + 1e-6
    return timed


def _expect_fields(event: Event, fields: Mapping[str, type]) -> None:
    assert event.keys() == fields.keys()
    for field, kind in fields.items():
        assert isinstance(event[field], kind), (field, event)


def _end(event: Event) -> float:
    return cast(float, event["ts"]) + cast(float, event["dur"])
