"""Reports the progress of many continued tasks over one h2c connection, at a pace. Its own cost is small: the frames are
written by hand, with literal fields, and of answers only heads of frames are read.

The only argument is a JSON object: `address` HOST:PORT of the plain listener, `wakes` their ids, `rate` reports a
second of each. A line "ready" on standard output says that it is connected. A line "go N" on standard input has it
report for N seconds, each time more than before; then it says {"reports": ..., "bad": ..., "seconds": ...} of these.
"""

import json
import socket
import sys
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
WINDOW = (1 << 31) - 1 - 65_535
TICK_SECONDS = 0.01
# As many as every server takes at once; behind its pace the load is slower, and says so by what it has sent.
UNANSWERED_MAX = 100
ANSWER_SECONDS = 10
# The first byte of an indexed :status 200 of HPACK's static table.
STATUS_200 = 0x88


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name: str, value: str) -> bytes:
    """A field without the dynamic table (RFC 7541, 6.2.2); names and values are shorter than 127 bytes."""
    return bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def status_byte(fields: bytes) -> int:
    """The first byte of the first field, past a change of the dynamic table's size (RFC 7541, 6.3)."""
    place = 0
    while fields[place] & 0xE0 == 0x20:
        is_long = fields[place] & 0x1F == 0x1F
        place += 1
        while is_long:
            is_long = fields[place] & 0x80 != 0
            place += 1
    return fields[place]


class Load:
    def __init__(self, address: str, wakes: list[str], rate: int):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        settings = frame(SETTINGS, 0, 0, b"") + frame(WINDOW_UPDATE, 0, 0, WINDOW.to_bytes(4, "big"))
        self.socket.sendall(PREFACE + settings)
        self.heads = [
            b"".join([
                literal(":method", "POST"), literal(":scheme", "http"), literal(":authority", address),
                literal(":path", f"/v1/wakes/{wake}/progress"),
            ])
            for wake in wakes
        ]  # fmt: skip
        self.pace = len(wakes) * rate
        self.sent, self.answered, self.bad, self.next_stream = 0, 0, 0, 1
        self.unread = b""

    def report(self, count: int) -> None:
        frames = []
        for _ in range(count):
            turn, place = divmod(self.sent, len(self.heads))
            body = b'{"completed":%d,"total":1000000,"title":"Exporting","subtitle":"film %d"}' % (turn + 1, turn + 1)
            frames.append(frame(HEADERS, END_HEADERS, self.next_stream, self.heads[place]))
            frames.append(frame(DATA, END_STREAM, self.next_stream, body))
            self.next_stream += 2
            self.sent += 1
        self.socket.sendall(b"".join(frames))

    def read(self, seconds: float) -> None:
        """Takes what comes within some time."""
        self.socket.settimeout(max(seconds, 0.0005))
        try:
            received = self.socket.recv(1 << 18)
        except TimeoutError:
            return
        if not received:
            raise SystemExit("the gateway closed the connection")
        self.unread += received
        start = 0
        while len(self.unread) - start >= 9:
            length = int.from_bytes(self.unread[start : start + 3], "big")
            if len(self.unread) - start < 9 + length:
                break
            kind, flags = self.unread[start + 3], self.unread[start + 4]
            payload = self.unread[start + 9 : start + 9 + length]
            start += 9 + length
            if kind == HEADERS:
                self.bad += status_byte(payload) != STATUS_200
            if kind in (HEADERS, DATA) and flags & END_STREAM:
                self.answered += 1
            if kind == SETTINGS and not flags & ACK:
                self.socket.sendall(frame(SETTINGS, ACK, 0, b""))
            if kind == PING and not flags & ACK:
                self.socket.sendall(frame(PING, ACK, 0, payload))
            if kind in (RST_STREAM, GOAWAY):
                raise SystemExit(f"the gateway sent a frame of type {kind}: {payload.hex()}")
        self.unread = self.unread[start:]

    def run(self, seconds: float) -> dict:
        first, bad, begun = self.sent, self.bad, time.monotonic()
        while (now := time.monotonic()) < begun + seconds:
            room = UNANSWERED_MAX - (self.sent - self.answered)
            due = min(int((now - begun) * self.pace) - (self.sent - first), room)
            if due > 0:
                self.report(due)
            self.read(TICK_SECONDS)
        took, deadline = time.monotonic() - begun, time.monotonic() + ANSWER_SECONDS
        while self.answered < self.sent and time.monotonic() < deadline:
            self.read(TICK_SECONDS)
        missing = self.sent - self.answered
        return {"reports": self.sent - first, "bad": self.bad - bad + missing, "seconds": took}


def main() -> None:
    load = Load(**json.loads(sys.argv[1]))
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(load.run(float(line.split()[1]))), flush=True)


if __name__ == "__main__":
    main()
