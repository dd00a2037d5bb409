"""Durable pushes: CPU of each beside nghttpd, and how many a second beside Redis and PostgreSQL on the same disk."""

import os
import random
import statistics

import durable_peers
import h2load
import processes
import push_load

RATIO_TARGET = 1.6
DEVICES = 100_000
# Connections, and how much each has on its way; PostgreSQL gets as many rows at once, 100 a statement.
SHAPES = [(16, 200), (64, 1)]
SINGLE_TOGETHER = 8


class DurableGateway(processes.Gateway):
    """The gateway over its journal, pushed to over h2c: the peers have no TLS either."""

    name = "gateway"

    def __init__(self, products: str, folder: str):
        super().__init__(products, folder, [], ["store=sqlite"])
        source = random.Random(3)
        self.folder, self.body = folder, os.path.join(folder, "body")
        paths = [f"/3/device/{source.getrandbits(256):064x}" for _ in range(DEVICES)]
        for connections, _ in SHAPES:
            h2load.write_paths(folder, f"uris{connections}", paths, connections)
        with open(self.body, "wb") as file:
            file.write(push_load.payload())

    def rate(self, pushes: int, connections: int, streams: int) -> float:
        uris = os.path.join(self.folder, f"uris{connections}")
        # A process for each of many connections that wait most of the time would cost more than what is measured.
        together = 1 if streams > 1 else SINGLE_TOGETHER
        took = h2load.run(
            f"http://{self.plain}", uris, self.body, push_load.headers(), connections, streams, pushes, together=together
        )  # fmt: skip
        return pushes / took

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds(self.pid)


def compare(products: str, folder: str, runs: int, pushes: int) -> list[dict]:
    """Interleaved runs at saturation; nobody is pinned, everybody has the machine, the load generator included."""
    if durable_peers.disk_of(folder) in ("tmpfs", "ramfs", "overlayfs"):
        raise SystemExit(f"{folder} is on no disk of its own; set TMPDIR to a folder on a disk")
    payload = "m" * push_load.PAYLOAD_BYTES
    places = {name: os.path.join(folder, name) for name in ("gateway", "redis", "postgres")}
    os.chmod(os.path.dirname(folder), 0o711)
    os.chmod(folder, 0o711)
    for place in places.values():
        os.mkdir(place)
    with DurableGateway(products, places["gateway"]) as gateway, \
            durable_peers.Redis(places["redis"], DEVICES, payload) as redis, \
            durable_peers.Postgres(places["postgres"], DEVICES, payload) as postgres:  # fmt: skip
        servers = (gateway, redis, postgres)
        return [row(servers, connections, streams, runs, pushes) for connections, streams in SHAPES]


def row(servers: tuple, connections: int, streams: int, runs: int, pushes: int) -> dict:
    rates: dict[str, list[float]] = {server.name: [] for server in servers}
    cpu: dict[str, list[float]] = {server.name: [] for server in servers}
    # Long runs, as starting the load is part of them. With one push at a time on a connection they take longer, and
    # PostgreSQL, which gets batches, does not differ.
    count = pushes * (5 if streams > 1 else 1)
    taking_part = [server for server in servers if streams > 1 or server.name != "PostgreSQL"]
    for number in range(runs + 1):
        for server in taking_part:
            durable_peers.settle()
            before = server.cpu_seconds()
            rate = server.rate(count, connections, streams)
            # The first run of each makes the devices, and does not count.
            if number > 0:
                rates[server.name].append(rate)
                cpu[server.name].append((server.cpu_seconds() - before) / count * 1e6)
    medians = {name: statistics.median(values) for name, values in rates.items() if values}
    factors = {name: medians["gateway"] / value for name, value in medians.items() if name != "gateway"}
    return {
        "shape": f"{connections} connections x {streams}",
        "pushesPerSecond": {name: round(value) for name, value in medians.items()},
        "cpuMicroseconds": {name: round(statistics.median(values), 2) for name, values in cpu.items() if values},
        "factors": {name: round(value, 2) for name, value in factors.items()},
        "samples": {name: [round(value) for value in values] for name, values in rates.items() if values},
        "passed": all(value >= 1 for value in factors.values()),
    }
