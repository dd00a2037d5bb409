"""The latency of a topic's pushes while another topic's provider sends at full speed."""

import argparse
from bisect import bisect_left
from contextlib import ExitStack
from functools import partial

from bench import push_load
from bench.tables import Table, microseconds
from clients import steady_load
from shared import interleaved, processes

QUIET_TOPIC = "com.example.quiet"
QUIET_CONNECTIONS, QUIET_RATE, QUIET_DEVICES = 4, 100, 1000
NOISY_CONNECTIONS, NOISY_STREAMS = 32, 100
SECONDS = 4.0
# The noise starts before the quiet topic and ends after it.
NOISE_SECONDS, NOISE_WARM_UP_SECONDS = SECONDS + 3.0, 0.3
RUNS_MAX = 3
# The maximum time of the slowest hundredth of the quiet pushes, as a multiple of their time without noise.
TAIL_RATIO_TARGET = 2.0


def loads(gateway: processes.Gateway, folder: str) -> tuple[steady_load.Load, steady_load.Load]:
    """Starts the quiet and the noisy provider. The noisy one has a lower CPU priority, so that the quiet pushes do
    not wait for their own provider."""
    base = f"https://{gateway.edge}"
    quiet = push_load.steady(
        base, folder, "quiet", headers=push_load.headers(QUIET_TOPIC), connections=QUIET_CONNECTIONS,
        streams=NOISY_STREAMS, seconds=SECONDS, rate=QUIET_RATE,
    )  # fmt: skip
    noisy = push_load.steady(
        base, folder, "gateway", connections=NOISY_CONNECTIONS, streams=NOISY_STREAMS, seconds=NOISE_SECONDS,
        warm_up_seconds=NOISE_WARM_UP_SECONDS, prefix=["chrt", "--idle", "0"], takes_refusals=True,
    )  # fmt: skip
    return quiet, noisy


def beside(quiet: steady_load.Load, noisy: steady_load.Load, pid: int) -> interleaved.Sample:
    """Returns the figures of the quiet provider while the other sends, and the rate and refusals of the other."""
    with steady_load.Clock(pid) as clock, steady_load.Running(noisy) as noise:
        logs, quiet_clock = steady_load.finished(quiet, pid)
        other_logs = noise.finish()
    other = {f"others {name}": value for name, value in steady_load.figures(other_logs, clock).items()}
    return {**steady_load.figures(logs, quiet_clock), **answered_before(logs, other_logs), **other}


def answered_before(logs: list[steady_load.Log], other_logs: list[steady_load.Log]) -> dict[str, float]:
    """Counts the answers to the other provider while a quiet push waited for its own. Unlike the time, this number
    hardly depends on other load of the machine."""
    ends = sorted(end for log in other_logs for end in log.ends)
    counts = []
    for log in logs:
        counted = steady_load.inside(log, *steady_load.window(logs))
        for end, took in zip(log.ends[counted], log.took[counted], strict=True):
            counts.append(bisect_left(ends, end) - bisect_left(ends, end - took))
    counts.sort()
    return {"othersP50": counts[len(counts) // 2], "othersP99": counts[len(counts) * 99 // 100]}


def measure(options: argparse.Namespace, folder: str) -> list[Table]:
    """Returns median figures of pushes in the default store, alone and under noise; the gateway has one core and one
    loop."""
    push_load.write_inputs(folder, NOISY_CONNECTIONS)
    push_load.write(folder, "quiet", push_load.paths(QUIET_DEVICES, seed=6), QUIET_CONNECTIONS)
    with ExitStack() as stack:
        gateway = stack.enter_context(processes.Gateway(options.products, folder, steady_load.SERVER_CORE, []))
        quiet, noisy = loads(gateway, folder)
        sides = {
            "alone": partial(steady_load.observe, quiet, gateway.pid),
            "next to the other": partial(beside, quiet, noisy, gateway.pid),
        }
        samples = interleaved.run(min(options.runs, RUNS_MAX), sides)
    calm, busy = map(interleaved.medians, samples.values())
    ratio = busy["p99"] / calm["p99"]
    table = Table(
        f"A quiet topic's pushes, {QUIET_CONNECTIONS * QUIET_RATE:,} a second, durable, one core, TLS",
        ["", "p50", "p99"],
        [
            [name, microseconds(figures["p50"]), microseconds(figures["p99"])]
            for name, figures in zip(sides, (calm, busy), strict=True)
        ],
        [
            f"the other topic's provider: {NOISY_CONNECTIONS} connections x {NOISY_STREAMS}, "
            f"{busy['others perSecond']:,.0f} pushes a second, {busy['others refused']:.1%} of them refused",
            f"while a quiet push waited, {busy['othersP50']:,.0f} of those were answered at the median, "
            f"{busy['othersP99']:,.0f} at p99",
        ],
    )
    told = f"a p99 of {ratio:.2f} times what it is alone; target: at most {TAIL_RATIO_TARGET:g}"
    table.notes.append(f"{told}  {table.target(ratio <= TAIL_RATIO_TARGET)}")
    return [table]
