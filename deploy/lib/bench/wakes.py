"""Wakes a second from end to end: a push, its wake on one of 50 workers, its result; and the CPU that each costs."""

import json
import os
import time
import urllib.request

from bench import push_load
from bench.tables import Table
from clients import h2load
from clients.fleet_process import CONNECT_SECONDS, FleetProcess
from shared import processes

WORKERS = 50
SLOTS = 100
CONNECTIONS = 10
WAKES_A_SECOND = 5000
SECONDS = 20
# Pushes of the last moment need a moment to come to their end.
LAST_SECONDS = 2.0


def completed(admin: str) -> int:
    """How many pushes the gateway with this admin address counts as completed."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{admin}/v1/stats") as answer:
        return json.load(answer)["pushes"]["completed"]


def measure(products: str, folder: str) -> list[Table]:
    title = f"Push, wake and result with {WORKERS} workers; target: {WAKES_A_SECOND:,} a second"
    table = Table(title, ["store", "a second", "gateway, CPU us", ""], [])
    for store in ("memory", "sqlite"):
        done, took, spent = run(products, os.path.join(folder, store), store)
        # The load itself takes a moment to start, and the last wakes to end.
        passed = done == WAKES_A_SECOND * SECONDS and done / took >= WAKES_A_SECOND * 0.95
        cells = [store, f"{done / took:,.0f}", f"{spent / max(1, done) * 1e6:.1f}", table.target(passed)]
        table.rows.append(cells)
    return [table]


def run(products: str, folder: str, store: str) -> tuple[int, float, float]:
    """How many wakes came to their end, in how many seconds, and the CPU seconds of the gateway. Each device is pushed
    to once, so that every push is a wake of its own."""
    os.mkdir(folder)
    wakes = WAKES_A_SECOND * SECONDS
    h2load.write_paths(folder, "uris", [f"/3/device/{number:064x}" for number in range(wakes)], CONNECTIONS)
    uris, body = os.path.join(folder, "uris"), os.path.join(folder, "body")
    with open(body, "wb") as file:
        file.write(push_load.payload())
    with processes.Gateway(products, folder, [], [f"store={store}"]) as gateway, \
            FleetProcess(address=gateway.edge, ca=gateway.ca, topic="com.example.bench", connections=WORKERS,
                         slots=SLOTS, by_device=False) as fleet:  # fmt: skip
        fleet.next("subscribed", CONNECT_SECONDS)
        started, spent = time.monotonic(), processes.cpu_seconds(gateway.pid)
        h2load.run(
            f"https://{gateway.edge}", uris, body, push_load.headers(), CONNECTIONS, 32, wakes,
            rate=WAKES_A_SECOND // CONNECTIONS,
        )  # fmt: skip
        deadline = time.monotonic() + LAST_SECONDS
        while (done := completed(gateway.admin)) < wakes and time.monotonic() < deadline:
            time.sleep(0.02)
        took = time.monotonic() - started
        spent = processes.cpu_seconds(gateway.pid) - spent
    return done, took, spent
