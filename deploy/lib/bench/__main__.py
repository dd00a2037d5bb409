"""Runs the measurements, prints tables, and writes .build/bench.json and the page on speed. deploy/bench calls it."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass

from bench import (
    cluster_load,
    durable_load,
    growth,
    herd,
    http2_load,
    instructions,
    machine,
    overload,
    tables,
    wake_latency,
    wakes,
)
from bench.tables import Table

FIGURES = ".build/bench.json"


# The maximum memory for each device, in bytes.
REGISTERED_BYTES_TARGET, PENDING_BYTES_TARGET = 300, 600


def memory(options: argparse.Namespace, _: str) -> list[Table]:
    command = [os.path.join(options.products, "wakegate-memory")]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    registered, pending = measured["bytesPerIdleDevice"], measured["bytesPerPendingDevice"]
    rows = [
        ["registered and idle", f"{registered:.0f}", f"{REGISTERED_BYTES_TARGET}"],
        ["with a pending push of 228 bytes", f"{pending:.0f}", f"{PENDING_BYTES_TARGET}"],
    ]
    table = Table(f"Memory, bytes a device of {measured['devices']:,}", ["", "bytes", "at most"], rows)
    table.notes.append(table.target(registered <= REGISTERED_BYTES_TARGET and pending <= PENDING_BYTES_TARGET))
    return [table]


@dataclass
class Part:
    """A measurement: its function, and whether it is part of the record."""

    help: str
    measure: Callable[[argparse.Namespace, str], list[Table]]
    in_record: bool = False


# In the order in which they run.
PARTS = {
    "http2": Part("CPU, rate and latency of a push compared with nghttpd", http2_load.compare, in_record=True),
    "durable": Part("durable pushes compared with Redis", durable_load.compare, in_record=True),
    "loops": Part("a push with one loop and with two", growth.loops, in_record=True),
    "devices": Part("a push with ten thousand devices and with a million", growth.devices, in_record=True),
    "connections": Part("a push on 10 to 10,000 connections", growth.connections, in_record=True),
    "overload": Part(
        "a quiet topic's pushes next to a provider that sends at full rate", overload.measure, in_record=True
    ),
    "latency": Part("from the 200 of a push to its wake", wake_latency.measure, in_record=True),
    "memory": Part("memory of a million devices", memory, in_record=True),
    "instructions": Part("instructions of a push, counted by callgrind, compared with nghttpd", instructions.measure),
    "wakes": Part("5,000 wakes a second to workers", wakes.measure),
    "herd": Part("a million wakes due at one instant through 50 streams, and nghttpd", herd.measure),
    "cluster": Part("one, two and three gateways on one PostgreSQL", cluster_load.measure),
}


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
    parser.add_argument("--devices", type=int, default=100_000, help="devices of the cluster")
    parser.add_argument("--minutes", type=float, default=1, help="how long the cluster's devices are pushed to")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--only", choices=list(PARTS), metavar="PART", help="measure this part alone")
    choice.add_argument("--all", action="store_true", help="measure all parts, in about forty minutes")
    choice.add_argument("--write-page", action="store_true", help="write what was measured last into the page on speed")
    options = parser.parse_args()
    if not options.write_page and not options.products:
        parser.error("call deploy/bench, which builds what is measured")
    return options


def measured_before(here: dict) -> dict:
    """Returns the figures in the file that are kept: those of the same commit on the same machine."""
    try:
        with open(FIGURES, encoding="utf-8") as file:
            before = json.load(file)
    except (OSError, ValueError):
        return {"machine": here}
    return before if before.get("machine") == here else {"machine": here}


def main() -> int:
    # Being stopped from outside must not leave any process or mount behind either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parsed()
    if options.write_page:
        tables.write(FIGURES, PARTS)
        return 0
    here = machine.described()
    wanted = [options.only] if options.only else [
        name for name, part in PARTS.items() if part.in_record or options.all
    ]  # fmt: skip
    results = measured_before(here)
    print(tables.machine_line(here), flush=True)
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
            shown = PARTS[name].measure(options, place)
            results[name] = [asdict(table) for table in shown]
            for table in shown:
                print(table.console(), flush=True)
                passed += table.passed
            with open(FIGURES, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=2)
    # On a virtual machine, other machines may have used the cores. This affects times more than CPU.
    print(f"\nstolen by other virtual machines: {ticks.share('stolen'):.1%} of the cores' time")
    print(f"the figures are in {FIGURES}")
    if passed:
        print(f"{tables.verdict(all(passed))}: {sum(passed)} of {len(passed)} targets reached")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
