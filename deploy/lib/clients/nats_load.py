"""Publishes to a JetStream stream, and waits for its acknowledgements. Called by nats_peer.py, as a process of its own.

The messages lie ready in one block of bytes, each as long as the others, and an acknowledgement is counted by its line
ends: what is left to Python is a few microseconds for each read, whatever came in it.
"""

import json
import random
import select
import socket
import sys
import time

CHUNK = 1 << 18
# Of all messages laid ready, which are sent again and again; each connection has its own.
READY = 100_000
WAIT_SECONDS = 30
LINES_AN_ANSWER = 2


class Publisher:
    """A connection with at most `window` of its `count` messages on their way."""

    def __init__(self, port: int, inbox: str, block: bytes, ready: int, window: int, count: int):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(f'CONNECT {{"verbose":false,"pedantic":false}}\r\nSUB {inbox} 1\r\nPING\r\n'.encode())
        greeting = b""
        while b"PONG\r\n" not in greeting:
            greeting += self.socket.recv(CHUNK)
        self.block, self.ready, self.size = memoryview(block), ready, len(block) // ready
        self.window, self.left, self.waiting = window, count, count
        self.place = self.lines = 0
        self.sent_at = 0.0

    def send(self, count: int) -> None:
        count = min(count, self.left)
        self.left -= count
        while count:
            some = min(count, self.ready - self.place)
            self.socket.sendall(self.block[self.place * self.size : (self.place + some) * self.size])
            self.place = (self.place + some) % self.ready
            count -= some

    def receive(self) -> int:
        """How many were acknowledged."""
        received = self.socket.recv(CHUNK)
        if not received or b'"error"' in received or b"-ERR" in received:
            raise SystemExit(f"NATS said {received[-300:]!r}")
        if b"PING\r\n" in received:
            self.socket.sendall(b"PONG\r\n")
            self.lines -= 1
        self.lines += received.count(b"\n")
        acknowledged, self.lines = divmod(self.lines, LINES_AN_ANSWER)
        self.waiting -= acknowledged
        return acknowledged


def publisher(number: int, settings: dict) -> Publisher:
    connections, payload = settings["connections"], settings["payload"].encode()
    # Of one length, as all messages of a connection have to be.
    inbox = f"_INBOX.{settings['seed']}.{number:04}"
    source = random.Random(settings["seed"] * connections + number)
    ready = READY // connections
    block = b"".join(
        b"PUB device.%064x %s %d\r\n%s\r\n"
        % (source.randrange(settings["devices"]), inbox.encode(), len(payload), payload)
        for _ in range(ready)
    )
    return Publisher(settings["port"], inbox, block, ready, settings["window"], settings["count"] // connections)


def main() -> None:
    settings = json.loads(sys.argv[1])
    window = settings["window"]
    publishers = [publisher(number, settings) for number in range(settings["connections"])]
    # Said when it is ready, so that all begin together.
    print("ready", flush=True)
    sys.stdin.readline()
    poll = select.epoll()
    by_descriptor = {each.socket.fileno(): each for each in publishers}
    began, cpu = time.monotonic(), time.process_time()
    for descriptor, each in by_descriptor.items():
        poll.register(descriptor, select.EPOLLIN)
        each.sent_at = time.monotonic()
        each.send(window)
    microseconds = []
    working = len(publishers)
    while working:
        ready = poll.poll(WAIT_SECONDS)
        if not ready:
            raise SystemExit(f"NATS did not answer within {WAIT_SECONDS} s")
        for descriptor, _ in ready:
            each = by_descriptor[descriptor]
            acknowledged = each.receive()
            if window == 1 and acknowledged:
                now = time.monotonic()
                microseconds.append(round((now - each.sent_at) * 1e6))
                each.sent_at = now
            each.send(acknowledged)
            working -= each.waiting == 0 and acknowledged > 0
    ended = time.monotonic()
    cpu = time.process_time() - cpu
    print(json.dumps({"began": began, "ended": ended, "cpuSeconds": cpu, "microseconds": microseconds}))


if __name__ == "__main__":
    main()
