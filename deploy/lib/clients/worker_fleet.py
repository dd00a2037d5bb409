"""Many workers in one process: each holds a stream of wakes open, and answers what comes. Raw HTTP/2, to be light.

Runs as a process of its own: python -m clients.worker_fleet '{"address": ..., "ca": ..., ...}' (see `Fleet`). It writes
lines of JSON: `{"subscribed": n}` once all are, `{"lost": n}` for connections that ended, and its counts for each byte
of its standard input. It ends at the end of its standard input.
"""

import json
import os
import select
import socket
import ssl
import struct
import sys

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = END_STREAM = 1
END_HEADERS = 4
STREAM_WINDOW = (1 << 31) - 1
SWEEP_EVERY = 50
READ_BYTES = 65536


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def literal(index: int, value: str) -> bytes:
    """A field of HPACK whose name has an index below 15, without indexing (RFC 7541 §6.2.2)."""
    assert len(value) < 127 + 128
    length = bytes([len(value)]) if len(value) < 127 else bytes([127, len(value) - 127])
    return bytes([index]) + length + value.encode()


class Worker:
    """One connection with one stream of wakes."""

    def __init__(self, fleet: "Fleet", number: int):
        host, port = fleet.address.rsplit(":", 1)
        plain = socket.create_connection((host, int(port)), timeout=20)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = fleet.tls.wrap_socket(plain, server_hostname=host) if fleet.tls else plain
        self.fleet = fleet
        self.buffer = b""
        self.texts: dict[int, bytes] = {}
        self.stream = 1
        settings = struct.pack(">HIHI", 2, 0, 4, STREAM_WINDOW)
        out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, settings)
        out += frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", STREAM_WINDOW - 65535))
        out += self.subscription(number)
        self.socket.sendall(out)
        self.socket.setblocking(False)

    def head(self, method: int, path: str) -> bytes:
        """`method` is 2 for GET, 3 for POST, as in the static table."""
        scheme = 7 if self.fleet.tls else 6
        return bytes([0x80 | method, 0x80 | scheme]) + literal(4, path) + literal(1, self.fleet.address)

    def subscription(self, number: int) -> bytes:
        device = f"&device={number:064x}" if self.fleet.by_device else ""
        path = f"/v1/topics/{self.fleet.topic}/wakes?slots={self.fleet.slots}&name=bench{device}"
        self.texts[self.stream] = b""
        request = frame(HEADERS, END_HEADERS | END_STREAM, self.stream, self.head(2, path))
        self.stream += 2
        return request

    def readable(self) -> None:
        try:
            while received := self.socket.recv(READ_BYTES):
                self.buffer += received
                # Without TLS the next call would only say that there is nothing.
                if self.fleet.tls is None and len(received) < READ_BYTES:
                    break
            if not received:
                raise ConnectionError
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        out = b""
        position = 0
        while len(self.buffer) - position >= 9:
            head, flags, stream = struct.unpack_from(">IBI", self.buffer, position)
            length, kind = head >> 8, head & 0xFF
            if len(self.buffer) - position < 9 + length:
                break
            payload = self.buffer[position + 9 : position + 9 + length]
            position += 9 + length
            if kind == DATA and stream in self.texts:
                out += self.text_received(stream, payload)
            elif kind == HEADERS:
                # A connection's first head begins with the table's new size (0x20). 0x88 is :status 200; answers to
                # results are 204 (0x89).
                status = payload.removeprefix(b"\x20")[:1]
                if stream in self.texts and status == b"\x88":
                    self.fleet.subscribed += 1
                elif stream not in self.texts and status == b"\x89":
                    self.fleet.answered += 1
                elif self.fleet.is_strict or stream in self.texts:
                    raise SystemExit(f"a worker's request was refused: {payload!r}")
            elif kind in (SETTINGS, PING) and not flags & ACK:
                out += frame(kind, ACK, 0, payload if kind == PING else b"")
            elif kind in (GOAWAY, RST_STREAM):
                raise ConnectionError
        self.buffer = self.buffer[position:]
        if out:
            # A worker writes little: what does not fit a socket's buffer is a fault.
            self.socket.sendall(out)

    def text_received(self, stream: int, payload: bytes) -> bytes:
        text = self.texts[stream] + payload
        *events, self.texts[stream] = text.split(b"\n\n")
        out = b""
        for event in events:
            if not event.startswith(b"event: wake"):
                continue
            start = event.index(b"id: ") + 4
            wake = event[start : event.index(b"\n", start)].decode()
            self.fleet.woken += 1
            out += frame(HEADERS, END_HEADERS, self.stream, self.head(3, f"/v1/wakes/{wake}"))
            out += frame(DATA, END_STREAM, self.stream, b'{"result":"newData"}')
            self.stream += 2
        return out


def tell(**fields: object) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


class Fleet:
    """`connections` with a stream each, of the device with the same number if `by_device`.

    A result that does not count ends a fleet that `is_strict`.
    """

    def __init__(
        self,
        address: str,
        ca: str | None,
        topic: str,
        connections: int,
        slots: int = 1,
        by_device: bool = True,
        is_strict: bool = True,
    ):
        self.address, self.topic, self.slots, self.by_device = address, topic, slots, by_device
        self.is_strict = is_strict
        self.tls = ssl.create_default_context(cafile=ca) if ca else None
        if self.tls:
            self.tls.set_alpn_protocols(["h2"])
        self.subscribed = self.woken = self.answered = self.lost = 0
        self.workers: dict[int, Worker] = {}
        self.poll = select.epoll()
        self.poll.register(sys.stdin.fileno(), select.EPOLLIN)
        for number in range(connections):
            worker = Worker(self, number)
            self.workers[worker.socket.fileno()] = worker
            self.poll.register(worker.socket.fileno(), select.EPOLLIN)
            if number % SWEEP_EVERY == 0:
                self.sweep(0)
        while self.subscribed < connections:
            self.sweep(1)
        tell(subscribed=self.subscribed)

    def sweep(self, seconds: float) -> bool:
        """Serves what is ready; false when the standard input has ended."""
        lost = self.lost
        for descriptor, _ in self.poll.poll(seconds, 4096):
            if descriptor == sys.stdin.fileno():
                if not os.read(descriptor, 4096):
                    return False
                tell(woken=self.woken, answered=self.answered, lost=self.lost)
                continue
            try:
                self.workers[descriptor].readable()
            except (ConnectionError, OSError):
                self.poll.unregister(descriptor)
                self.workers.pop(descriptor).socket.close()
                self.lost += 1
        if self.lost != lost:
            tell(lost=self.lost)
        return True


if __name__ == "__main__":
    fleet = Fleet(**json.loads(sys.argv[1]))
    while fleet.sweep(5):
        pass
