"""Durable pushes compared with upserts of Redis on the same disk: rate, cost and latency.

Redis syncs before every answer, as the gateway does, and gets pipelined commands. It parses no HTTP and no JSON.
"""

import argparse
import csv
import os
import subprocess
import tempfile
import time

from bench import push_load
from bench.tables import Table, microseconds
from clients import steady_load
from shared import interleaved, processes

DEVICES = 100_000
# The number of connections, and of concurrent pushes on each.
SATURATED, SINGLE = (16, 200), (64, 1)
# Long runs if all pushes are concurrent. One at a time takes longer.
REQUESTS_FACTOR = {SATURATED: 1.5, SINGLE: 0.2}
SINGLE_TOGETHER = 8
APNS_ID = "9d3220fe-444b-633e-d1f1-5d0dcb4f537a"
EXPIRY = "1999999999"

# One upsert, without the gateway's counters, registration, conditions and launch policy.
REDIS_UPSERT = """
local old = redis.call('HMGET', KEYS[1], 'coalesced', 'priority', 'expiry')
local coalesced, priority, expiry = 0, tonumber(ARGV[3]), tonumber(ARGV[4])
if old[1] then
  coalesced = tonumber(old[1]) + 1
  priority = math.max(priority, tonumber(old[2]))
  expiry = math.max(expiry, tonumber(old[3]))
end
redis.call('HSET', KEYS[1], 'payload', ARGV[1], 'apnsID', ARGV[2],
  'coalesced', coalesced, 'priority', priority, 'expiry', expiry)
return coalesced
"""


def latency(microseconds: list[float]) -> interleaved.Sample:
    ordered = sorted(microseconds)
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100]} if ordered else {}


class DurableGateway(processes.Gateway):
    """The gateway with its journal, over h2c, because Redis has no TLS either."""

    name = "gateway"

    def __init__(self, products: str, folder: str):
        super().__init__(products, folder, [], ["store=sqlite"])
        self.folder = folder
        for connections, _ in (SATURATED, SINGLE):
            push_load.write(folder, f"uris{connections}", push_load.paths(DEVICES, seed=3), connections)

    def rate(self, pushes: int, connections: int, streams: int) -> interleaved.Sample:
        """Returns the pushes a second, and the microseconds of each single push."""
        # A separate process for each of many mostly waiting connections would cost more than the measured work.
        together = 1 if streams > 1 else SINGLE_TOGETHER
        with tempfile.TemporaryDirectory(prefix="wakegate-bench.", dir=steady_load.LOGS) as logs:
            took = push_load.run(
                f"http://{self.plain}", self.folder, f"uris{connections}", connections, streams, pushes,
                together=together, logs=logs if streams == 1 else None,
            )  # fmt: skip
            took_each = [value for log in os.scandir(logs) for value in steady_load.read(log.path).took]
        return {"perSecond": pushes // connections * connections / took, **latency(took_each)}


class Redis(processes.Server):
    """Redis with its append-only file synced before every answer."""

    name = "Redis"

    def __init__(self, folder: str, devices: int, payload: str):
        self.port, self.devices, self.payload = processes.free_port(), devices, payload
        # Debian keeps the server's program in redis-tools, under another name; the service that would start it is not.
        command = [
            "redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", folder, "--save", "",
            "--appendonly", "yes", "--appendfsync", "always",
        ]  # fmt: skip
        wrapped = ["bash", "-c", 'exec -a redis-server "$(command -v redis-check-rdb)" "$@"', *command]
        super().__init__(wrapped, os.path.join(folder, "redis.log"))
        self.wait_until(lambda: self.cli("PING") == "PONG")
        self.script = self.cli("SCRIPT", "LOAD", REDIS_UPSERT)

    def cli(self, *words: str) -> str:
        command = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    def rate(self, pushes: int, connections: int, streams: int) -> interleaved.Sample:
        """Runs upserts over this number of connections, each with this number of commands in its pipeline."""
        command = [
            "redis-benchmark", "-p", str(self.port), "-c", str(connections), "-P", str(streams), "-n", str(pushes),
            "-r", str(self.devices), "--csv", "EVALSHA", self.script, "1", "device:__rand_int__", self.payload,
            APNS_ID, "5", EXPIRY,
        ]  # fmt: skip
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
        if "rror" in output:
            raise SystemExit(f"redis-benchmark: {output}")
        told = list(csv.DictReader(output[output.index('"test"') :].splitlines()))[-1]
        single = {name: float(told[f"{name}_latency_ms"]) * 1000 for name in ("p50", "p99")} if streams == 1 else {}
        return {"perSecond": float(told["rps"]), **single}


def require_disk(folder: str) -> None:
    """Ends the measurement if `folder` is in memory, where a sync costs nothing."""
    command = ["stat", "-f", "-c", "%T", folder]
    kind = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if kind in ("tmpfs", "ramfs", "overlayfs"):
        raise SystemExit(f"{folder} is on no disk of its own; set TMPDIR to a folder on a disk")


def settle() -> None:
    """Waits until the unwritten data of the previous run is on the disk, so that it does not affect the next run."""
    os.sync()
    time.sleep(0.2)


def compare(options: argparse.Namespace, folder: str) -> list[Table]:
    """Runs both servers alternately. No process is pinned: servers and load generator may use all cores."""
    require_disk(folder)
    payload = "m" * push_load.PAYLOAD_BYTES
    places = {name: os.path.join(folder, name) for name in ("gateway", "redis")}
    for place in places.values():
        os.mkdir(place)
    with DurableGateway(options.products, places["gateway"]) as gateway, \
            Redis(places["redis"], DEVICES, payload) as redis:  # fmt: skip
        servers = (gateway, redis)
        return [
            table(servers, shape, options.runs, round(options.requests * factor))
            for shape, factor in REQUESTS_FACTOR.items()
        ]


def table(servers: tuple[DurableGateway, Redis], shape: tuple[int, int], runs: int, pushes: int) -> Table:
    connections, streams = shape

    def sample(server: DurableGateway | Redis) -> interleaved.Sample:
        before = processes.cpu_seconds(server.pid)
        figures = server.rate(pushes, connections, streams)
        return {**figures, "cpuMicroseconds": (processes.cpu_seconds(server.pid) - before) / pushes * 1e6}

    sides = {server.name: (lambda server=server: sample(server)) for server in servers}
    samples = interleaved.run(runs, sides, between=settle)
    medians = {name: interleaved.medians(values) for name, values in samples.items()}
    factor = medians["gateway"]["perSecond"] / medians["Redis"]["perSecond"]
    result = Table(
        f"Durable upserts, {connections} connections x {streams}, no process pinned, on one disk",
        ["", "CPU us each", "a second", *(["p50", "p99"] if streams == 1 else []), "the gateway's rate / this rate"],
        [
            [
                name, f"{figures['cpuMicroseconds']:.1f}", f"{figures['perSecond']:,.0f}",
                *(microseconds(figures[key]) for key in ("p50", "p99") if streams == 1),
                f"{factor:.2f}" if name == "Redis" else "",
            ]
            for name, figures in medians.items()
        ],
    )  # fmt: skip
    result.notes.append(f"target: ahead of Redis  {result.target(factor >= 1)}")
    return result
