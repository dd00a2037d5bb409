"""Wakes a second from end to end: a push, its wake on one of 50 workers, and its result, with the CPU cost of each."""

import argparse
import json
import os
import time
import urllib.request

from bench import push_load
from bench.tables import Table
from clients.fleet_process import FleetProcess
from shared import processes, waiting

WORKERS = 50
SLOTS = 100
CONNECTIONS = 10
WAKES_A_SECOND = 5000
SECONDS = 20
# The last pushes need a moment to end.
LAST_SECONDS = 2.0


def completed(admin: str) -> int:
    """Returns the number of completed pushes of the gateway with this admin address."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{admin}/v1/stats") as answer:
        return json.load(answer)["pushes"]["completed"]


def measure(options: argparse.Namespace, folder: str) -> list[Table]:
    title = f"Push, wake and result with {WORKERS} workers; target: {WAKES_A_SECOND:,} a second"
    table = Table(title, ["store", "a second", "gateway, CPU us", ""], [])
    for store in ("memory", "sqlite"):
        done, took, spent = run(options.products, os.path.join(folder, store), store)
        # The load needs a moment to start, and the last wakes need a moment to end.
        passed = done == WAKES_A_SECOND * SECONDS and done / took >= WAKES_A_SECOND * 0.95
        cells = [store, f"{done / took:,.0f}", f"{spent / max(1, done) * 1e6:.1f}", table.target(passed)]
        table.rows.append(cells)
    return [table]


def run(products: str, folder: str, store: str) -> tuple[int, float, float]:
    """Returns the number of completed wakes, the seconds, and the gateway's CPU seconds. Each device gets one push,
    so that every push has a separate wake."""
    os.mkdir(folder)
    wakes = WAKES_A_SECOND * SECONDS
    push_load.write(folder, "uris", [f"/3/device/{number:064x}" for number in range(wakes)], CONNECTIONS)
    with processes.Gateway(products, folder, [], [f"store={store}"]) as gateway, \
            FleetProcess(folder, gateway.edge, push_load.TOPIC, WORKERS, "tls", slots=SLOTS):  # fmt: skip
        started, spent = time.monotonic(), processes.cpu_seconds(gateway.pid)
        rate = WAKES_A_SECOND // CONNECTIONS
        push_load.run(f"https://{gateway.edge}", folder, "uris", CONNECTIONS, push_load.STREAMS, wakes, rate=rate)
        waiting.until(lambda: completed(gateway.admin) >= wakes, LAST_SECONDS)
        took, done = time.monotonic() - started, completed(gateway.admin)
        spent = processes.cpu_seconds(gateway.pid) - spent
    return done, took, spent
