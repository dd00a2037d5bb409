"""The time from the 200 of a push to its wake on an idle worker's stream, as measured in one client process.

Over HTTP/1.1 in cleartext, because parsing HTTP/2 or TLS in Python would take longer than the measured time.
"""

import argparse
import re
import select
import socket
import statistics
import time

from bench import push_load
from bench.tables import Table
from shared import processes

MEDIAN_TARGET_MS = 1.0
ROUND_SAMPLES = 25
WAIT_SECONDS = 10
TOPIC = "com.example.latency"
PUSH_FIELDS = f"apns-topic: {TOPIC}\r\napns-push-type: background\r\napns-priority: 5\r\n"
# The answers to a push, a subscription and a result, and the event of a wake.
OK, NO_CONTENT = (re.compile(rb"^HTTP/1.1 %d .*\r\n\r\n" % status, re.DOTALL) for status in (200, 204))
WAKE = re.compile(rb"event: wake\n.*?^id: ?(\S+)$.*?\n\n", re.DOTALL | re.MULTILINE)


def connect(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    made = socket.create_connection((host, int(port)), timeout=WAIT_SECONDS)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def send(connection: socket.socket, method: str, path: str, fields: str = "", body: bytes = b"") -> None:
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{fields}content-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def arrivals(wanted: dict[socket.socket, re.Pattern]) -> dict[socket.socket, tuple[float, re.Match]]:
    """Returns the time at which each connection received the expected bytes. The time is taken before the bytes are
    parsed."""
    found: dict[socket.socket, tuple[float, re.Match]] = {}
    texts = dict.fromkeys(wanted, b"")
    while len(found) < len(wanted):
        ready, _, _ = select.select(list(wanted), [], [], WAIT_SECONDS)
        if not ready:
            raise SystemExit(f"nothing more within {WAIT_SECONDS} s; there is {texts}")
        for moment, each, received in [(time.monotonic(), each, each.recv(65536)) for each in ready]:
            if not received:
                raise SystemExit(f"the gateway closed a connection, after {texts[each]!r}")
            texts[each] += received
            if each not in found and (match := wanted[each].search(texts[each])):
                found[each] = (moment, match)
    return found


def times(pushed_to: str, served_by: str, numbers: range, warm_up: int) -> list[tuple[float, float]]:
    """Returns the milliseconds from the 200, and from sending the push, to the wake, for a new device each time; the
    first ones do not count."""
    worker, provider, results = map(connect, (served_by, pushed_to, served_by))
    with worker, provider, results:
        send(worker, "GET", f"/v1/topics/{TOPIC}/wakes?slots=16&name=bench", "accept: text/event-stream\r\n")
        arrivals({worker: OK})
        pairs = []
        for number in numbers:
            sent = time.monotonic()
            send(provider, "POST", f"/3/device/{number:064x}", PUSH_FIELDS, push_load.payload())
            found = arrivals({provider: OK, worker: WAKE})
            (accepted, _), (woken, wake) = found[provider], found[worker]
            pairs.append(((woken - accepted) * 1000, (woken - sent) * 1000))
            send(results, "POST", f"/v1/wakes/{wake[1].decode()}", "", b'{"result":"newData"}')
            arrivals({results: NO_CONTENT})
    return pairs[warm_up:]


def measure(options: argparse.Namespace, folder: str) -> list[Table]:
    samples = options.samples
    pairs: list[tuple[float, float]] = []
    with processes.Gateway(options.products, folder, [], []) as gateway:
        # A connection stays on the loop that accepted it. New ones in each round cover both same and different loops.
        for start in range(0, samples, ROUND_SAMPLES):
            numbers = range(2 * start, 2 * start + min(samples - start, ROUND_SAMPLES) + 1)
            pairs += times(gateway.plain, gateway.plain, numbers, warm_up=1)
    values = sorted(pair[0] for pair in pairs)
    median, sent = (statistics.median(pair[index] for pair in pairs) for index in (0, 1))
    figures = [median, *(values[samples * hundredths // 100] for hundredths in (10, 90, 99))]
    cells = [f"{samples} samples", *(f"{value:.3f}" for value in figures)]
    table = Table("From the 200 of a push to its wake, ms", ["", "median", "p10", "p90", "p99"], [cells])
    table.notes = [
        f"target: a median under {MEDIAN_TARGET_MS:g}  {table.target(median < MEDIAN_TARGET_MS)}",
        "a negative time means that the wake came before the 200; "
        f"the median from sending the push to its wake is {sent:.3f} ms",
    ]
    return [table]
