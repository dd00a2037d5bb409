"""Server-sent events, byte by byte."""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple


class Event(NamedTuple):
    name: str
    data: str


class EventReader:
    """Divides a stream into events. Lines end only at a line feed (or CR LF), not at other Unicode line breaks."""

    def __init__(self, limit: int = 1 << 16) -> None:
        self._limit, self._rest = limit, b""

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yields the events that end in a chunk. Raises ValueError if the unfinished event exceeds the limit."""
        *texts, self._rest = re.split(rb"\n\r?\n", self._rest + chunk)
        for text in texts:
            fields = [line.removesuffix(b"\r").partition(b":") for line in text.split(b"\n")]
            names = [value.removeprefix(b" ") for field, _, value in fields if field == b"event"]
            data = [value.removeprefix(b" ") for field, _, value in fields if field == b"data"]
            if data:
                name = (names or [b"message"])[-1]
                yield Event(name.decode("utf-8", "replace"), b"\n".join(data).decode("utf-8", "replace"))
        if len(self._rest) > self._limit:
            raise ValueError(f"an event has more than {self._limit} bytes")
