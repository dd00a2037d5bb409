"""Compares the gateway with nghttpd: cost, rate and latency of a push, and of a POST with an empty answer."""

import argparse
import os
from contextlib import ExitStack
from functools import partial

from bench import push_load
from bench.tables import Table, microseconds
from clients import steady_load
from shared import interleaved, processes

# The rate of all connections together for the latencies, far below the maximum of the slowest server.
RATE = 10_000
RATE_RUNS_MAX = 3
RATE_TOGETHER, RATE_SECONDS, FULL_SECONDS = 10, 1.6, 2.3
# The schemes, and the maximum number of counted runs of each. The targets apply to TLS.
SCHEMES = {"TLS": 99, "h2c": 3}
# If the server is busy for less than this share, the load is the bottleneck.
BUSY = 0.95
STORES = {"gateway, memory": "memory", "gateway, durable": "sqlite"}
# The maximum CPU time of a push over TLS, as a multiple of nghttpd's.
TARGETS = {"gateway, memory": 0.5, "gateway, durable": 0.65}
# Over TLS, at `RATE`: how many times as long as with nghttpd half of the pushes may take at most, and how many
# milliseconds when they are durable.
MEDIAN_RATIO_TARGET = 1.2
DURABLE_MEDIAN_TARGET_MS = 3.0


# The servers: for each one, its address for each scheme that it supports, and the name of its paths.
Sides = dict[str, tuple[processes.Program, dict[str, str], str]]


def start(stack: ExitStack, products: str, folder: str) -> Sides:
    """Starts all servers on the first core; the others are idle while one is measured."""
    sides: Sides = {}
    for name, store in STORES.items():
        place = os.path.join(folder, store)
        os.mkdir(place)
        gateway = stack.enter_context(processes.Gateway(products, place, steady_load.SERVER_CORE, [f"store={store}"]))
        bases = {"h2c": f"http://{gateway.plain}", "TLS": f"https://{gateway.edge}"}
        sides[name] = (gateway, bases, "gateway")
    key, certificate = (os.path.join(gateway.state, name) for name in ("server.key", "server.pem"))
    for scheme, head, files in (("h2c", "http", None), ("TLS", "https", (key, certificate))):
        server = stack.enter_context(processes.Nghttpd(folder, steady_load.SERVER_CORE, files))
        sides[f"nghttpd {scheme}"] = (server, {scheme: f"{head}://{server.address}"}, "nghttpd")
    return sides


def medians(sides: Sides, scheme: str, folder: str, runs: int, **shape: object) -> dict[str, interleaved.Sample]:
    """Measures all servers over `scheme`. nghttpd runs twice, because one process has TLS or cleartext."""
    asked = {
        name.removesuffix(f" {scheme}"): partial(
            steady_load.observe, push_load.steady(bases[scheme], folder, paths, **shape), server.pid
        )
        for name, (server, bases, paths) in sides.items()
        if scheme in bases
    }
    return {name: interleaved.medians(samples) for name, samples in interleaved.run(runs, asked).items()}


def compare(options: argparse.Namespace, folder: str) -> list[Table]:
    push_load.write_inputs(folder)
    runs = options.runs
    with ExitStack() as stack:
        sides = start(stack, options.products, folder)
        return [over(scheme, sides, folder, min(runs, runs_max), runs) for scheme, runs_max in SCHEMES.items()]


def over(scheme: str, sides: Sides, folder: str, full_runs: int, runs: int) -> Table:
    """Measures every server over `scheme`, at its maximum rate and at a rate that is low for all of them."""
    full = medians(sides, scheme, folder, full_runs, seconds=FULL_SECONDS)
    # A few processes are enough for a rate. To keep a server busy, each connection has its own process.
    paced = {"rate": RATE // push_load.CONNECTIONS, "together": RATE_TOGETHER, "seconds": RATE_SECONDS}
    calm = medians(sides, scheme, folder, min(runs, RATE_RUNS_MAX), **paced)
    is_saturated = {name: figures["busy"] >= BUSY for name, figures in full.items()}
    table = Table(
        f"A POST over {scheme}, one core to each server, {push_load.CONNECTIONS} connections x {push_load.STREAMS}",
        ["", "CPU us each", "a second, saturated", f"p50 at {RATE:,}/s", f"p99 at {RATE:,}/s"],
        [
            [
                name, f"{figures['cpuMicroseconds']:.2f}",
                f"{'' if is_saturated[name] else '> '}{figures['perSecond']:,.0f}",
                microseconds(calm[name]["p50"]), microseconds(calm[name]["p99"]),
            ]
            for name, figures in full.items()
        ],
    )  # fmt: skip
    if not all(is_saturated.values()):
        table.notes.append(
            "where a rate has `>`, the load generator was the bottleneck: the server's core was not fully used"
        )
    if scheme == "TLS":
        add_targets(
            table,
            {name: figures["cpuMicroseconds"] for name, figures in full.items()},
            {name: figures["p50"] for name, figures in calm.items()},
        )
    return table


def add_targets(table: Table, cost: dict[str, float], took: dict[str, float]) -> None:
    """Adds notes with targets: the CPU of a push relative to nghttpd, and its median latency at a low rate."""
    figures = [
        (f"{name}: {cost[name] / cost['nghttpd']:.2f} times the CPU of nghttpd", cost[name] / cost["nghttpd"], target)
        for name, target in TARGETS.items()
    ]
    ratio, durable = took["gateway, memory"] / took["nghttpd"], took["gateway, durable"] / 1000
    figures += [
        (f"gateway, memory: a p50 of {ratio:.2f} times that of nghttpd", ratio, MEDIAN_RATIO_TARGET),
        (f"gateway, durable: a p50 of {durable:.2f} ms", durable, DURABLE_MEDIAN_TARGET_MS),
    ]
    for text, value, target in figures:
        table.notes.append(f"{text}; target: at most {target:g}  {table.target(value <= target)}")
