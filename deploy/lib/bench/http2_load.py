"""The gateway beside other HTTP/2 servers: cost, rate and latency of a push, and of a POST answered with nothing."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from bench import push_load
from clients import steady_load
from peers import http2_peers
from shared import interleaved, processes

STREAMS = 32
# Of all connections together, for the latencies: far below what the slowest of them does.
RATE = 10_000
RATE_RUNS_MAX = 3
RATE_TOGETHER, RATE_SECONDS, FULL_SECONDS = 10, 1.6, 2.3
# Schemes, and the most runs that count of each; targets are over TLS.
SCHEMES = {"TLS": 99, "h2c": 3}
# The load keeps a server busy for less than this when it is the load that is at its end.
BUSY = 0.95
STORES = {"gateway, memory": "memory", "gateway, durable": "sqlite"}
TARGETS = {name: push_load.RATIO_TARGETS[store] for name, store in STORES.items()}
# Over TLS, at `RATE`: how many times as long as with nghttpd half of the pushes may take at most, and how long when they
# are durable, in microseconds.
MEDIAN_RATIO_TARGET = 1.2
DURABLE_MEDIAN_TARGET = 3000.0


class Side:
    """A server, and how it is asked."""

    def __init__(self, server: processes.Server, bases: dict[str, str], uris: str):
        self.server, self.bases, self.uris = server, bases, uris

    def load(self, scheme: str, folder: str, rate: int | None) -> steady_load.Load:
        # A few processes are enough for a rate; to keep a server busy, each connection has one.
        return steady_load.Load(
            self.bases[scheme], os.path.join(folder, self.uris), os.path.join(folder, "body"), push_load.headers(),
            push_load.CONNECTIONS, STREAMS, rate=rate, together=RATE_TOGETHER if rate else 1,
            seconds=RATE_SECONDS if rate else FULL_SECONDS,
        )  # fmt: skip

    def observe(self, scheme: str, folder: str, rate: int | None = None) -> interleaved.Sample:
        return steady_load.observe(self.load(scheme, folder, rate), self.server.pid)


def start(stack: ExitStack, products: str, folder: str) -> dict[str, Side]:
    """All servers, on the first core; they stay idle while one of them is measured."""
    sides = {}
    for name, store in (("gateway, memory", "memory"), ("gateway, durable", "sqlite")):
        place = os.path.join(folder, store)
        os.mkdir(place)
        gateway = stack.enter_context(processes.Gateway(products, place, steady_load.SERVER_CORE, [f"store={store}"]))
        bases = {"h2c": f"http://{gateway.plain}", "TLS": f"https://{gateway.edge}"}
        sides[name] = Side(gateway, bases, "gateway")
    key, certificate = (os.path.join(gateway.state, name) for name in ("server.key", "server.pem"))
    for scheme, files in (("h2c", None), ("TLS", (key, certificate))):
        server = stack.enter_context(processes.Nghttpd(folder, steady_load.SERVER_CORE, files))
        sides[f"nghttpd {scheme}"] = Side(
            server, {scheme: f"{http2_peers.HEADS[scheme]}://{server.address}"}, "nghttpd"
        )
    for kind in (http2_peers.Nginx, http2_peers.H2o):
        peer = stack.enter_context(kind(folder, steady_load.SERVER_CORE, key, certificate))
        sides[kind.name] = Side(peer, peer.bases, kind.uris)
    return sides


def asked(
    sides: dict[str, Side], scheme: str, folder: str, rate: int | None
) -> dict[str, Callable[[], interleaved.Sample]]:
    """Who takes part over `scheme`. nghttpd speaks TLS or not, and is two."""
    return {
        name.removesuffix(f" {scheme}"): partial(side.observe, scheme, folder, rate)
        for name, side in sides.items()
        if scheme in side.bases
    }


def compare(products: str, folder: str, runs: int) -> dict:
    push_load.write_inputs(folder)
    rows: list[dict] = []
    with ExitStack() as stack:
        sides = start(stack, products, folder)
        for scheme, runs_max in SCHEMES.items():
            full = interleaved.run(min(runs, runs_max), asked(sides, scheme, folder, None))
            rate = RATE // push_load.CONNECTIONS
            paced = interleaved.run(min(runs, RATE_RUNS_MAX), asked(sides, scheme, folder, rate))
            rows += [row(scheme, name, full[name], paced[name]) for name in full]
    ratios = [ratio(rows, name, target) for name, target in TARGETS.items()]
    return {
        "connections": push_load.CONNECTIONS, "streams": STREAMS, "rate": RATE, "rows": rows, "ratios": ratios,
        "medians": medians(rows),
    }  # fmt: skip


def row(scheme: str, name: str, full: list[interleaved.Sample], paced: list[interleaved.Sample]) -> dict:
    middle, calm = interleaved.medians(full), interleaved.medians(paced)
    return {
        "scheme": scheme,
        "server": name,
        "cpuMicroseconds": middle["cpuMicroseconds"],
        "perSecond": round(middle["perSecond"]),
        "busy": middle["busy"],
        "saturated": middle["busy"] >= BUSY,
        "p50": calm["p50"],
        "p99": calm["p99"],
        "samples": [round(sample["cpuMicroseconds"], 3) for sample in full],
    }


def ratio(rows: list[dict], name: str, target: float) -> dict:
    """What a push over TLS costs beside what nghttpd takes."""
    cost = {row["server"]: row["cpuMicroseconds"] for row in rows if row["scheme"] == "TLS"}
    value = cost[name] / cost["nghttpd"]
    return {"server": name, "ratio": round(value, 3), "target": target, "passed": value <= target}


def medians(rows: list[dict]) -> list[dict]:
    """How long half of the pushes over TLS take at most where nobody is busy, beside their targets."""
    took = {row["server"]: row["p50"] for row in rows if row["scheme"] == "TLS"}
    ratio = took["gateway, memory"] / took["nghttpd"]
    durable = took["gateway, durable"]
    return [
        {"figure": f"gateway, memory: a p50 of {ratio:.2f} times that of nghttpd", "target": MEDIAN_RATIO_TARGET,
         "passed": ratio <= MEDIAN_RATIO_TARGET},
        {"figure": f"gateway, durable: a p50 of {durable / 1000:.2f} ms", "target": DURABLE_MEDIAN_TARGET / 1000,
         "passed": durable < DURABLE_MEDIAN_TARGET},
    ]  # fmt: skip
