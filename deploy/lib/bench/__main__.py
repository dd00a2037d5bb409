"""Runs the measurements, prints tables, writes .build/bench.json and the page on speed. Called by deploy/bench."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench import (
    auth_load,
    beside,
    chosen_tokens,
    cluster_load,
    durable_load,
    growth,
    herd,
    http2_load,
    instructions,
    lists,
    machine,
    million,
    overload,
    page,
    progress,
    push_load,
    redis_set,
    streams,
    tables,
    tasks,
    transfers,
    wake_latency,
    wakes,
    webhook_load,
)

FIGURES = ".build/bench.json"


def memory(options: argparse.Namespace, _: str) -> dict:
    command = [os.path.join(options.products, "wakegate-memory")]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    registered, pending = measured["bytesPerIdleDevice"], measured["bytesPerPendingDevice"]
    passed = registered <= tables.REGISTERED_BYTES_TARGET and pending <= tables.PENDING_BYTES_TARGET
    return {**measured, "passed": passed}


def cpu(store: str, factor: int, options: argparse.Namespace, folder: str) -> list[dict]:
    return push_load.measure(options.products, folder, options.runs, options.requests * factor, store)


@dataclass
class Part:
    """One measurement: how it is made, how it is shown, and whether it is in the record."""

    help: str
    measure: Callable[[argparse.Namespace, str], Any]
    tables: Callable[[Any], list[tables.Table]]
    in_record: bool = False


# In the order in which they run.
PARTS = {
    "http2": Part(
        "CPU, rate and latency of a push beside nghttpd, nginx and h2o",
        lambda options, folder: http2_load.compare(options.products, folder, options.runs),
        tables.http2, in_record=True,
    ),
    "durable": Part(
        "durable pushes beside Redis, PostgreSQL and NATS",
        lambda options, folder: durable_load.compare(options.products, folder, options.runs, options.requests),
        tables.durable, in_record=True,
    ),
    "loops": Part(
        "a push with one loop and with two",
        lambda options, folder: growth.loops(options.products, folder, options.runs),
        tables.loops, in_record=True,
    ),
    "devices": Part(
        "a push with ten thousand devices and with a million",
        lambda options, folder: growth.devices(options.products, folder, options.runs),
        tables.devices, in_record=True,
    ),
    "five-million": Part(
        "the same with five million",
        lambda options, folder: growth.devices(options.products, folder, options.runs, growth.MANY_DEVICES),
        tables.devices,
    ),
    "connections": Part(
        "a push on 10 to 10,000 connections",
        lambda options, folder: growth.connections(options.products, folder, options.runs),
        tables.connections, in_record=True,
    ),
    "overload": Part(
        "a quiet topic's pushes beside a provider that sends at full rate",
        lambda options, folder: overload.measure(options.products, folder, options.runs),
        tables.overload, in_record=True,
    ),
    "latency": Part(
        "from the 200 of a push to its wake",
        lambda options, folder: wake_latency.measure(options.products, folder, options.samples, push_load.payload()),
        tables.latency, in_record=True,
    ),
    "memory": Part("memory of a million devices", memory, tables.memory, in_record=True),
    "cpu": Part(
        "CPU a push beside nghttpd in eight shapes, connecting included",
        partial(cpu, "memory", 1), partial(tables.cpu, "push kept in memory"),
    ),
    # Longer runs: beside a short one, the start of a hundred clients would be a large part of what is compared.
    "durable-cpu": Part(
        "the same of durable pushes",
        partial(cpu, "sqlite", 4), partial(tables.cpu, "durable push"),
    ),
    "redis-set": Part(
        "CPU a durable push over h2c beside a bare SET of Redis, both with a core",
        lambda options, folder: redis_set.compare(options.products, folder, options.runs, options.requests),
        tables.redis_set,
    ),
    "instructions": Part(
        "instructions of a push, counted by callgrind, beside nghttpd",
        lambda options, folder: instructions.measure(options.products, folder),
        tables.instructions,
    ),
    "beside": Part(
        "a durable push beside that of the build --beside names",
        lambda options, folder: beside.compare(options.products, options.beside, folder, options.runs),
        tables.beside,
    ),
    "auth": Part(
        "CPU a push with provider tokens beside without",
        lambda options, folder: auth_load.measure(options.products, folder, options.runs, options.requests),
        tables.auth,
    ),
    "commits": Part(
        "commits of the journal alone",
        lambda options, folder: million.commits(options.products, folder),
        tables.commits,
    ),
    "million": Part(
        "memory, disk and the start with a million durable devices",
        lambda options, folder: million.measure(options.products, folder),
        tables.million_devices,
    ),
    "chosen-tokens": Part(
        "the start with a million devices whose tokens somebody chose",
        lambda options, folder: chosen_tokens.measure(options.products, folder),
        tables.chosen_tokens,
    ),
    "lists": Part(
        "the lists of devices and pushes with a hundred thousand devices",
        lambda options, folder: lists.measure(options.products, folder),
        tables.lists,
    ),
    "webhook": Part(
        "wakes a second to a webhook",
        lambda options, folder: webhook_load.measure(options.products, folder, options.runs, options.requests // 10),
        tables.webhook,
    ),
    "streams": Part(
        "20,000 idle workers",
        lambda options, folder: streams.measure(options.products, folder, options.streams, options.samples),
        tables.idle_workers,
    ),
    "tasks": Part(
        "requests of background tasks submitted and launched, and kept for a tenth of a million devices",
        lambda options, folder: tasks.measure(options.products, folder),
        tables.tasks,
    ),
    "progress": Part(
        "a thousand continued tasks that report four times a second, and pushes beside them",
        lambda options, folder: progress.measure(options.products, folder, options.runs),
        tables.progress,
    ),
    "transfers": Part(
        "CPU a gigabyte of downloads, 64 at a time, beside curl",
        lambda options, folder: transfers.measure(options.products, folder, options.runs),
        tables.transfers,
    ),
    "wakes": Part(
        "5,000 wakes a second to workers",
        lambda options, folder: [wakes.measure(options.products, folder, store) for store in ("memory", "sqlite")],
        tables.end_to_end,
    ),
    "herd": Part(
        "a million wakes due at one instant through 50 streams, and nghttpd",
        lambda options, folder: herd.measure(options.products, folder, options.runs),
        tables.herd,
    ),
    "cluster": Part(
        "one, two and three gateways on one PostgreSQL beside the bare transaction",
        lambda options, folder: cluster_load.measure(
            options.products, folder, options.runs, options.requests, options.samples, options.devices, options.minutes
        ),
        tables.cluster,
    ),
}  # fmt: skip


def verdicts(result: Any) -> list[bool]:
    """Of every target in it; what is compared without a target has none."""
    if isinstance(result, list):
        return [passed for each in result for passed in verdicts(each)]
    if isinstance(result, dict):
        inner = [passed for each in result.values() for passed in verdicts(each)]
        return ([result["passed"]] if "passed" in result else []) + inner
    return []


def parsed() -> argparse.Namespace:
    parts = "\n".join(f"  {'*' if part.in_record else ' '} {name:14}{part.help}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="deploy/bench", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures the build that is shipped. Without --only and --all it makes the record, ten minutes after"
        " the build.",
        epilog=f"parts, of which those with * are the record:\n{parts}",
    )  # fmt: skip
    parser.add_argument("--products", help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=5, help="runs of each kind, of which the median counts")
    parser.add_argument("--requests", type=int, default=200_000, help="requests a run, where they are counted")
    parser.add_argument("--samples", type=int, default=1000, help="samples of the latency of wakes")
    parser.add_argument("--streams", type=int, default=streams.STREAMS, help="idle workers")
    parser.add_argument("--devices", type=int, default=100_000, help="devices of the cluster")
    parser.add_argument("--minutes", type=float, default=1, help="how long the cluster's devices are pushed to")
    parser.add_argument("--beside", metavar="DIR", help="a folder with another shipped wakegate, for the part beside")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--only", choices=list(PARTS), metavar="PART", help="measure this part alone")
    choice.add_argument("--all", action="store_true", help="measure all parts, in about forty minutes")
    choice.add_argument("--write-page", action="store_true", help="write what was measured last into the page on speed")
    options = parser.parse_args()
    if not options.write_page and not options.products:
        parser.error("call deploy/bench, which builds what is measured")
    if (options.only == "beside") != (options.beside is not None):
        parser.error("--only beside and --beside DIR go together")
    return options


def measured_before(here: dict) -> dict:
    """What stays in the file of figures: those of the same commit on the same machine."""
    try:
        with open(FIGURES, encoding="utf-8") as file:
            before = json.load(file)
    except (OSError, ValueError):
        return {"machine": here}
    return before if before.get("machine") == here else {"machine": here}


def main() -> int:
    # An end from outside shall leave nothing behind, either: no process, no mount.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parsed()
    if options.write_page:
        shown = {name: part.tables for name, part in PARTS.items()}
        return page.write(FIGURES, shown)
    here = machine.described()
    wanted = [options.only] if options.only else [
        name for name, part in PARTS.items() if part.in_record or options.all and name != "beside"
    ]  # fmt: skip
    results = measured_before(here)
    print(page.machine_line(here), flush=True)
    if (free := machine.idle()) < machine.IDLE_MIN:
        print(
            f"deploy/bench: something else is at work here: {1 - free:.0%} of the cores; figures will be off",
            flush=True,
        )
    passed, ticks = [], machine.Ticks()
    with tempfile.TemporaryDirectory(prefix="wakegate-bench.") as folder:
        for name in wanted:
            place = os.path.join(folder, name)
            os.mkdir(place)
            results[name] = PARTS[name].measure(options, place)
            for table in PARTS[name].tables(results[name]):
                print(table.console(), flush=True)
            passed += verdicts(results[name])
            with open(FIGURES, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=2)
    # On a virtual machine others may have had the cores meanwhile, which shows in times more than in CPU.
    print(f"\nstolen by other virtual machines: {ticks.share('stolen'):.1%} of the cores' time")
    print(f"the figures are in {FIGURES}")
    if passed:
        print(f"{tables.verdict(all(passed))}: {sum(passed)} of {len(passed)} targets reached")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
