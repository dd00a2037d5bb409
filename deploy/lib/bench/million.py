"""What a million devices cost: memory, disk, the start; and the journal's commits while they are pushed to."""

import json
import os
import signal
import subprocess
import time

from bench import push_load
from clients import h2load
from shared import processes

DEVICES = 1_000_000
READY_SECONDS_TARGET = 3.0
# An hour of a thousand pushes a second, as fast as they go.
HOUR_PUSHES = 3_600_000
COMMITS, BATCH = 20_000, 256
# How far the slow commits may be from the ordinary ones: compaction and checkpoints stay out of the way.
TAIL_TARGET = 5
CONNECTIONS, STREAMS = 16, 100


def commits(products: str, folder: str) -> dict:
    """The journal without a gateway: commits of random devices, compaction and checkpoints running."""
    command = [
        os.path.join(products, "wakegate-journal"), "--devices", str(DEVICES), "--commits", str(COMMITS),
        "--batch", str(BATCH), "--folder", folder,
    ]  # fmt: skip
    figures = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)
    median, tail = (figures[key] for key in ("commitMicrosecondsP50", "commitMicrosecondsP99"))
    return {
        "devices": DEVICES, "batch": BATCH, "figures": figures, "p50": median, "p99": tail,
        "passed": tail <= TAIL_TARGET * median,
    }  # fmt: skip


def megabytes(state: str, prefix: str) -> float:
    return sum(entry.stat().st_size for entry in os.scandir(state) if entry.name.startswith(prefix)) / 1e6


def push(folder: str, gateway: processes.Gateway, pushes: int) -> dict:
    """Pushes to each device in turn; what the gateway takes of memory and disk afterwards."""
    uris, body = os.path.join(folder, "uris"), os.path.join(folder, "body")
    h2load.run(f"http://{gateway.plain}", uris, body, push_load.headers(), CONNECTIONS, STREAMS, pushes)
    return {
        "pushes": pushes,
        "residentMegabytes": round(processes.resident_megabytes(gateway.pid)),
        "journalMegabytes": round(megabytes(gateway.state, "journal")),
        "historyMegabytes": round(megabytes(gateway.state, "history")),
    }


def measure(products: str, folder: str) -> dict:
    """Pushes once to each device, then for an hour's worth, kills the gateway, and starts it on what it left."""
    push_load.write_pushes(folder, "uris", DEVICES, CONNECTIONS, seed=4)
    with processes.Gateway(products, folder, [], ["store=sqlite"]) as gateway:
        sizes = [push(folder, gateway, DEVICES), push(folder, gateway, HOUR_PUSHES)]
        gateway.process.send_signal(signal.SIGKILL)
        gateway.process.wait()
    started = time.monotonic()
    with processes.Gateway(products, folder, [], ["store=sqlite"]) as gateway:
        took = time.monotonic() - started
        again = processes.resident_megabytes(gateway.pid)
    return {
        "devices": DEVICES, "sizes": sizes, "residentMegabytesAfterRestart": round(again),
        "readySeconds": round(took, 3), "passed": took <= READY_SECONDS_TARGET,
    }  # fmt: skip
