"""What a durable push over h2c costs beside a bare SET of Redis that is synced before its answer.

The payload is the same, as much is on its way, and each server has a core.
"""

import csv
import os
import subprocess

from bench import push_load
from clients import h2load, steady_load
from peers import durable_peers
from shared import interleaved, processes

CONNECTIONS, STREAMS = 100, 100
RATIO_TARGET = 1.0
# The start of a hundred clients is no large part of a run.
REQUESTS_FACTOR = 4


class BareRedis(durable_peers.Redis):
    """Redis that is told to SET and nothing else."""

    def rate(self, pushes: int, connections: int, streams: int) -> interleaved.Sample:
        command = [
            *steady_load.LOAD_CORES, "redis-benchmark", "-p", str(self.port), "-c", str(connections),
            "-P", str(streams), "-n", str(pushes), "-r", str(self.devices), "--csv", "SET", "device:__rand_int__",
            self.payload,
        ]  # fmt: skip
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
        if "rror" in output:
            raise SystemExit(f"redis-benchmark: {output}")
        told = list(csv.DictReader(output[output.index('"test"') :].splitlines()))[-1]
        return {"perSecond": float(told["rps"])}


def compare(products: str, folder: str, runs: int, requests: int) -> dict:
    pushes = requests * REQUESTS_FACTOR
    payload = "m" * push_load.PAYLOAD_BYTES
    places = {name: os.path.join(folder, name) for name in ("gateway", "redis")}
    for place in places.values():
        os.mkdir(place)
    push_load.write_inputs(folder)
    uris, body = os.path.join(folder, "gateway"), os.path.join(folder, "body")
    with processes.Gateway(products, places["gateway"], steady_load.SERVER_CORE, ["store=sqlite"]) as gateway, \
            BareRedis(places["redis"], push_load.DEVICES, payload, steady_load.SERVER_CORE) as redis:  # fmt: skip

        def push() -> interleaved.Sample:
            before = processes.cpu_seconds(gateway.pid)
            took = h2load.run(
                f"http://{gateway.plain}", uris, body, push_load.headers(), CONNECTIONS, STREAMS, pushes,
                steady_load.LOAD_CORES,
            )  # fmt: skip
            return {
                "cpuMicroseconds": (processes.cpu_seconds(gateway.pid) - before) / pushes * 1e6,
                "perSecond": pushes / took,
            }

        def store() -> interleaved.Sample:
            before = processes.cpu_seconds(redis.pid)
            rate = redis.rate(pushes, CONNECTIONS, STREAMS)
            return {"cpuMicroseconds": (processes.cpu_seconds(redis.pid) - before) / pushes * 1e6, **rate}

        samples = interleaved.run(runs, {"gateway": push, "Redis, SET": store}, between=durable_peers.settle)
    servers = {name: interleaved.medians(values) for name, values in samples.items()}
    ratio = servers["gateway"]["cpuMicroseconds"] / servers["Redis, SET"]["cpuMicroseconds"]
    return {
        "connections": CONNECTIONS,
        "streams": STREAMS,
        "servers": servers,
        "ratio": round(ratio, 2),
        "target": RATIO_TARGET,
        "passed": ratio <= RATIO_TARGET,
        "samples": {
            name: [round(value["cpuMicroseconds"], 3) for value in values] for name, values in samples.items()
        },
    }
