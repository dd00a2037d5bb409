"""Durable pushes: how many a second, what each costs and how long it takes, beside stores on the same disk."""

import os
import random
import tempfile

from bench import push_load
from clients import h2load, steady_load
from peers import durable_peers, nats_peer
from shared import interleaved, processes

DEVICES = 100_000
# Connections, and how much each has on its way; PostgreSQL gets as many rows at once, 100 a statement.
SATURATED, SINGLE = (16, 200), (64, 1)
# Long runs when all is on its way at once; one at a time takes longer.
REQUESTS_FACTOR = {SATURATED: 1.5, SINGLE: 0.2}
SINGLE_TOGETHER = 8
# Whom the gateway has to be ahead of.
AHEAD_OF = {SATURATED: ("Redis", "PostgreSQL"), SINGLE: ("Redis",)}


class DurableGateway(processes.Gateway):
    """The gateway over its journal, pushed to over h2c: the peers have no TLS either."""

    name = "gateway"

    def __init__(self, products: str, folder: str):
        super().__init__(products, folder, [], ["store=sqlite"])
        source = random.Random(3)
        self.folder, self.body = folder, os.path.join(folder, "body")
        paths = [f"/3/device/{source.getrandbits(256):064x}" for _ in range(DEVICES)]
        for connections, _ in (SATURATED, SINGLE):
            h2load.write_paths(folder, f"uris{connections}", paths, connections)
        with open(self.body, "wb") as file:
            file.write(push_load.payload())

    def rate(self, pushes: int, connections: int, streams: int) -> interleaved.Sample:
        """Pushes a second; of single ones how long each takes, microseconds."""
        uris = os.path.join(self.folder, f"uris{connections}")
        # A process for each of many connections that wait most of the time would cost more than what is measured.
        together = 1 if streams > 1 else SINGLE_TOGETHER
        with tempfile.TemporaryDirectory(prefix="wakegate-bench.", dir=steady_load.LOGS) as logs:
            took = h2load.run(
                f"http://{self.plain}", uris, self.body, push_load.headers(), connections, streams, pushes,
                together=together, logs=logs if streams == 1 else None,
            )  # fmt: skip
            took_each = [value for log in os.scandir(logs) for value in steady_load.read(log.path).took]
        return {"perSecond": pushes // connections * connections / took, **durable_peers.latency(took_each)}

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds(self.pid)


def compare(products: str, folder: str, runs: int, pushes: int) -> list[dict]:
    """Interleaved runs at saturation; nobody is pinned, everybody has the machine, the load generator included."""
    if durable_peers.disk_of(folder) in ("tmpfs", "ramfs", "overlayfs"):
        raise SystemExit(f"{folder} is on no disk of its own; set TMPDIR to a folder on a disk")
    payload = "m" * push_load.PAYLOAD_BYTES
    places = {name: os.path.join(folder, name) for name in ("gateway", "redis", "nats", "postgres")}
    os.chmod(os.path.dirname(folder), 0o711)
    os.chmod(folder, 0o711)
    for place in places.values():
        os.mkdir(place)
    with DurableGateway(products, places["gateway"]) as gateway, \
            durable_peers.Redis(places["redis"], DEVICES, payload) as redis, \
            nats_peer.NATS(places["nats"], DEVICES, payload) as nats, \
            durable_peers.Postgres(places["postgres"], DEVICES, payload) as postgres:  # fmt: skip
        servers = (gateway, redis, postgres, nats)
        return [row(servers, shape, runs, round(pushes * factor)) for shape, factor in REQUESTS_FACTOR.items()]


def row(servers: tuple, shape: tuple[int, int], runs: int, pushes: int) -> dict:
    connections, streams = shape

    def sample(server: durable_peers.Store) -> interleaved.Sample:
        before = server.cpu_seconds()
        figures = server.rate(pushes, connections, streams)
        return {**figures, "cpuMicroseconds": (server.cpu_seconds() - before) / pushes * 1e6}

    sides = {server.name: (lambda server=server: sample(server)) for server in servers}
    samples = interleaved.run(runs, sides, between=durable_peers.settle)
    medians = {name: interleaved.medians(values) for name, values in samples.items()}
    rates = {name: values["perSecond"] for name, values in medians.items()}
    factors = {name: rates["gateway"] / rate for name, rate in rates.items() if name != "gateway"}
    return {
        "connections": connections,
        "streams": streams,
        "servers": medians,
        "factors": {name: round(value, 2) for name, value in factors.items()},
        "samples": {name: [round(value["perSecond"]) for value in values] for name, values in samples.items()},
        "aheadOf": AHEAD_OF[shape],
        "passed": all(factors[name] >= 1 for name in AHEAD_OF[shape]),
    }
