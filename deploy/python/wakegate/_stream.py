"""Server-sent events, byte by byte."""

from __future__ import annotations

from typing import Iterator, List, NamedTuple


class Event(NamedTuple):
    name: str
    data: str


class EventReader:
    """Divides a stream into events. Lines end only at a line feed (or CR LF), not at other Unicode line breaks."""

    def __init__(self, limit: int = 1 << 16) -> None:
        self._limit, self._rest, self._name, self._size = limit, b"", "", 0
        self._data: List[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[Event]:
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            line = line.removesuffix(b"\r")
            if not line:
                if self._data:
                    yield Event(self._name or "message", b"\n".join(self._data).decode("utf-8", "replace"))
                self._name, self._data, self._size = "", [], 0
                continue
            self._size += len(line)
            field, _, value = line.partition(b":")
            if field == b"event":
                self._name = value.removeprefix(b" ").decode("utf-8", "replace")
            elif field == b"data":
                self._data.append(value.removeprefix(b" "))
            self._check(self._size)
        self._check(self._size + len(self._rest))

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise ValueError(f"an event has more than {self._limit} bytes")
