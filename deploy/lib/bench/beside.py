"""A durable push beside the same of another build: instructions, counted by callgrind, and how long one alone takes.

A provider that waits for each answer has each of its pushes in a commit of its own, so its p99 is that of a commit.
"""

import os
from functools import partial

from bench import instructions, push_load
from clients import steady_load
from shared import interleaved, processes

# How much more a push may take than in the other build.
INSTRUCTIONS_TARGET, P99_TARGET = 1.05, 1.10
SECONDS = 5.0


def compare(products: str, other: str, folder: str, runs: int) -> list[dict]:
    push_load.write_inputs(folder, connections=1)
    places = {name: os.path.join(folder, name) for name in ("this", "other")}
    for place in places.values():
        os.mkdir(place)
    builds = {"this": products, "other": other}
    counts = {name: instructions.durable(builds[name], places[name]) for name in builds}
    options = [steady_load.SERVER_CORE, ["store=sqlite"]]
    with processes.Gateway(products, places["this"], *options) as this:
        with processes.Gateway(other, places["other"], *options) as that:
            sides = {name: partial(alone, gateway, folder) for name, gateway in (("this", this), ("other", that))}
            times = {name: interleaved.medians(found, 0) for name, found in interleaved.run(runs, sides).items()}
    return [
        row("instructions, h2c", counts, INSTRUCTIONS_TARGET),
        row("p50 of one alone, microseconds", {name: found["p50"] for name, found in times.items()}),
        row("p99 of one alone, microseconds", {name: found["p99"] for name, found in times.items()}, P99_TARGET),
    ]


def alone(gateway: processes.Gateway, folder: str) -> interleaved.Sample:
    load = steady_load.Load(
        f"http://{gateway.plain}", os.path.join(folder, "gateway"), os.path.join(folder, "body"),
        push_load.headers(), connections=1, streams=1, seconds=SECONDS,
    )  # fmt: skip
    found = steady_load.observe(load, gateway.pid)
    return {"p50": found["p50"], "p99": found["p99"]}


def row(figure: str, found: dict[str, float], target: float | None = None) -> dict:
    ratio = found["this"] / found["other"]
    verdict = {"target": target, "passed": ratio <= target} if target else {}
    return {"figure": figure, **found, "ratio": round(ratio, 3), **verdict}
