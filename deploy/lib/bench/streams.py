"""20,000 idle workers on one gateway: memory a stream, CPU while idle, and the time to a wake on any of them."""

import json
import os
import resource
import select
import statistics
import subprocess
import sys
import time

from bench import allocations, idle_floor, push_load
from bench.wake_latency import Peer, wait_for_status
from shared import processes

# Schemes, and streams on a connection.
SHAPES = [("TLS", 1), ("h2c", 1), ("TLS", 10)]
TOPIC = "com.example.streams"
STREAMS = 20_000
# A process of workers stays well below the limit of descriptors.
WORKERS_PER_PROCESS = 9_000
# What the gateway keeps for itself (128), and some for the bench's own connections.
DESCRIPTORS_RESERVED = 160
# Of a connection with one stream. OpenSSL takes 13,800 of it over TLS, of which 3,000 are what a handshake has left and
# no call frees: its session, both keys of the exchange, digests, and lists of ciphers; libnghttp2's session 3,400.
MEMORY_TARGET_BYTES = {"TLS": 20_000, "h2c": 10_000}
CPU_TARGET = 0.02
LATENCY_TARGET_MS = 5.0
# Covers keep-alives (every 15 s) and PINGs (every 30 s) as often as they come.
IDLE_SECONDS = 60
CONNECT_SECONDS = 300
WAKE_SECONDS = 10
# After which a connection is known to be idle, and shorter than the time from one keep-alive to the next.
QUIET_SECONDS = 3


class FleetProcess:
    """A process of workers (clients.worker_fleet); ended when the block is left."""

    def __init__(self, **settings: object):
        command = [sys.executable, "-m", "clients.worker_fleet", json.dumps(settings)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.unread = b""

    def __enter__(self) -> "FleetProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self) -> dict:
        """How many wakes came, results counted, and connections were lost so far."""
        self.process.stdin.write(b"?")
        self.process.stdin.flush()
        return self.next("answered", 10)

    def next(self, key: str, seconds: float) -> dict:
        """The next line with `key` in it."""
        deadline = time.monotonic() + seconds
        while True:
            while b"\n" in self.unread:
                line, _, self.unread = self.unread.partition(b"\n")
                fields = json.loads(line)
                if fields.keys() == {"lost"}:
                    raise SystemExit(f"{fields['lost']} workers lost their connections")
                if key in fields:
                    return fields
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            received = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not received:
                raise SystemExit(f"the workers did not say \"{key}\" within {seconds:g} s")
            self.unread += received


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def shapes(streams: int, together: int) -> list[tuple[int, int]]:
    """Pairs of connections and streams on each: `together` where that is more than one, as a pool of workers shares a
    connection; else one each, as every worker is a process of its own, as far as the gateway has descriptors: the
    others share."""
    if together > 1:
        return [(streams // together, together)]
    alone = min(streams, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - DESCRIPTORS_RESERVED)
    pairs = [(min(WORKERS_PER_PROCESS, alone - start), 1) for start in range(0, alone, WORKERS_PER_PROCESS)]
    shared = -(-(streams - alone) // 100)
    return pairs + ([(shared, (streams - alone) // shared)] if shared else [])


def latencies(gateway: processes.Gateway, fleets: list[FleetProcess], streams: int, samples: int) -> list[float]:
    """Milliseconds from sending a push to its wake, of devices spread over all streams."""
    provider = Peer(gateway.edge, gateway.ca)
    headers = [("apns-topic", TOPIC), ("apns-push-type", "background"), ("apns-priority", "5")]
    bounds, start = [], 0
    for fleet, count in fleets:
        bounds.append((start, start + count, fleet))
        start += count
    values = []
    for sample in range(samples):
        number = sample * 7919 % streams
        fleet = next(fleet for first, end, fleet in bounds if first <= number < end)
        sent_at = time.monotonic()
        stream = provider.request("POST", f"/3/device/{number:064x}", headers, push_load.payload())
        wait_for_status(provider, stream, "200")
        told = fleet.next("device", WAKE_SECONDS)
        if told["device"] != f"{number:064x}":
            raise SystemExit(f"the wake of device {number} came on the stream of {told['device']}")
        values.append((told["at"] - sent_at) * 1000)
    provider.socket.close()
    return sorted(values)


def measure_shape(scheme: str, together: int, products: str, folder: str, streams: int, samples: int) -> dict:
    with processes.Gateway(products, folder, [], ["limits.connectionsMax=40000"]) as gateway:
        address, ca = (gateway.edge, gateway.ca) if scheme == "TLS" else (gateway.plain, None)
        # The first connections pay for what all share.
        with FleetProcess(address=address, ca=ca, topic="com.example.first", connections=50) as first:
            first.next("subscribed", CONNECT_SECONDS)
        time.sleep(2)
        before, started = resident_bytes(gateway.pid), time.monotonic()
        fleets, number, connections = [], 0, 0
        try:
            for count, each in shapes(streams, together):
                fleet = FleetProcess(
                    address=address, ca=ca, topic=TOPIC, connections=count, streams=each, first=number, times=True
                )  # fmt: skip
                fleets.append((fleet, count * each))
                number += count * each
                connections += count
            for fleet, _ in fleets:
                fleet.next("subscribed", CONNECT_SECONDS)
            connected = time.monotonic() - started
            time.sleep(IDLE_SECONDS / 4)
            memory = (resident_bytes(gateway.pid) - before) / number
            spent = processes.cpu_seconds(gateway.pid)
            time.sleep(IDLE_SECONDS)
            cpu = (processes.cpu_seconds(gateway.pid) - spent) / IDLE_SECONDS
            values = latencies(gateway, fleets, number, samples)
        finally:
            for fleet, _ in fleets:
                fleet.__exit__()
    median = statistics.median(values)
    return {
        "scheme": scheme,
        "streams": number,
        "connections": connections,
        "connectSeconds": round(connected, 1),
        "bytesPerStream": round(memory),
        "idleCPU": round(cpu, 4),
        "medianMilliseconds": round(median, 3),
        "p99Milliseconds": round(values[len(values) * 99 // 100], 3),
        "passed": cpu < CPU_TARGET and median < LATENCY_TARGET_MS
        and (together > 1 or memory <= MEMORY_TARGET_BYTES[scheme]),
    }


def held_bytes(products: str, folder: str, scheme: str, workers: int) -> float:
    """Bytes of the heap that a worker's idle connection takes, its place in the engine included."""
    count, prefix = allocations.counting(folder, scheme)
    with processes.Gateway(products, folder, prefix, []) as gateway:
        address, ca = (gateway.edge, gateway.ca) if scheme == "TLS" else (gateway.plain, None)
        # The first connections pay for what all share.
        with FleetProcess(address=address, ca=ca, topic="com.example.first", connections=50) as first:
            first.next("subscribed", CONNECT_SECONDS)
            time.sleep(QUIET_SECONDS)
            before = allocations.held(count)
            if before == 0:
                raise SystemExit("no memory was counted: the library was not loaded")
            with FleetProcess(address=address, ca=ca, topic=TOPIC, connections=workers) as fleet:
                fleet.next("subscribed", CONNECT_SECONDS)
                time.sleep(QUIET_SECONDS)
                return (allocations.held(count) - before) / workers


def measure(products: str, folder: str, streams: int, samples: int) -> dict:
    rows = []
    for scheme, together in SHAPES:
        place = os.path.join(folder, f"{scheme}{together}")
        os.mkdir(place)
        rows.append(measure_shape(scheme, together, products, place, streams, samples))
    return {"floorCPU": round(idle_floor.measure(streams), 4), "rows": rows}
