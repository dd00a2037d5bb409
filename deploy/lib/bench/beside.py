"""A durable push beside the same of another build: instructions, counted by callgrind, and how long one alone takes.

Both are made by `deploy/build --shipped`: a plain release build takes an eighth more instructions of the same code.
A provider that waits for each answer has each of its pushes in a commit of its own, so its p99 is that of a commit.
What the disk and the machine do meanwhile moves a run's p99 by more than what is looked for, so many short runs in turns
count as one. The other build runs twice, as two gateways: how far these two are apart is what the figure cannot tell.
"""

import os
from contextlib import ExitStack
from functools import partial

from bench import instructions, push_load
from clients import steady_load
from shared import interleaved, processes

# How much more a push may take than in the other build.
INSTRUCTIONS_TARGET, P99_TARGET = 1.05, 1.10
# Turns for each of the runs asked for, and how long a turn is.
TURNS, SECONDS = 4, 3.0


def compare(products: str, other: str, folder: str, runs: int) -> list[dict]:
    push_load.write_inputs(folder, connections=1)
    places = {name: os.path.join(folder, name) for name in ("this", "other", "again")}
    for place in places.values():
        os.mkdir(place)
    builds = {"this": products, "other": other, "again": other}
    counts = {name: instructions.durable(builds[name], places[name]) for name in ("this", "other")}
    with ExitStack() as stack:
        gateways = {
            name: stack.enter_context(
                processes.Gateway(builds[name], places[name], steady_load.SERVER_CORE, ["store=sqlite"])
            )
            for name in builds
        }
        sides = {name: partial(alone, gateway, folder) for name, gateway in gateways.items()}
        took = {
            name: sorted(each for turn in turns for each in turn)
            for name, turns in interleaved.run(runs * TURNS, sides).items()
        }
    return [
        row("instructions, h2c", counts, INSTRUCTIONS_TARGET),
        row("p50 of one alone, microseconds", {name: each[len(each) // 2] for name, each in took.items()}),
        row(
            "p99 of one alone, microseconds",
            {name: each[len(each) * 99 // 100] for name, each in took.items()},
            P99_TARGET,
        ),
    ]


def alone(gateway: processes.Gateway, folder: str) -> list[int]:
    load = steady_load.Load(
        f"http://{gateway.plain}", os.path.join(folder, "gateway"), os.path.join(folder, "body"),
        push_load.headers(), connections=1, streams=1, seconds=SECONDS,
    )  # fmt: skip
    return steady_load.durations(load, gateway.pid)


def row(figure: str, found: dict[str, float], target: float | None = None) -> dict:
    """The other build's figure is the mean of its two gateways where both were measured."""
    others = [found[name] for name in ("other", "again") if name in found]
    ratio = found["this"] * len(others) / sum(others)
    verdict = {"target": target, "passed": ratio <= target} if target else {}
    return {"figure": figure, **found, "ratio": round(ratio, 3), **verdict}
