"""What a million devices cost: memory, disk, the start; and the journal's commits while they are pushed to."""

import json
import os
import random
import signal
import subprocess
import time

import h2load
import processes
import push_load

DEVICES = 1_000_000
READY_SECONDS_TARGET = 3.0
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


def resident_megabytes(pid: int) -> float:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def megabytes(state: str, prefix: str) -> float:
    return sum(entry.stat().st_size for entry in os.scandir(state) if entry.name.startswith(prefix)) / 1e6


def push_to_all(folder: str, address: str) -> None:
    """One push to each of a million devices, in no order."""
    source = random.Random(4)
    paths = [f"/3/device/{source.getrandbits(256):064x}" for _ in range(DEVICES)]
    uris, body = os.path.join(folder, "uris"), os.path.join(folder, "body")
    h2load.write_paths(folder, "uris", paths, CONNECTIONS)
    with open(body, "wb") as file:
        file.write(push_load.payload())
    h2load.run(f"http://{address}", uris, body, push_load.headers(), CONNECTIONS, STREAMS, DEVICES)


def measure(products: str, folder: str) -> dict:
    """Pushes once to each device, kills the gateway, and starts it again on what it left."""
    with processes.Gateway(products, folder, [], ["store=sqlite"]) as gateway:
        push_to_all(folder, gateway.plain)
        resident = resident_megabytes(gateway.pid)
        journal, history = megabytes(gateway.state, "journal"), megabytes(gateway.state, "history")
        gateway.process.send_signal(signal.SIGKILL)
        gateway.process.wait()
    started = time.monotonic()
    with processes.Gateway(products, folder, [], ["store=sqlite"]) as gateway:
        took = time.monotonic() - started
        again = resident_megabytes(gateway.pid)
    return {
        "devices": DEVICES, "residentMegabytes": resident, "residentMegabytesAfterRestart": again,
        "journalMegabytes": journal, "historyMegabytes": history, "readySeconds": round(took, 3),
        "passed": took <= READY_SECONDS_TARGET,
    }  # fmt: skip
