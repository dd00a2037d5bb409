"""Compares the cost of a push with its budgets in `budgets.json`: heap allocations and instructions, and the heap bytes
of a worker's idle connection.

Usage: python -m bench.budgets debug|plain|shipped PRODUCTS. PRODUCTS is the folder of the build; `deploy/build` makes
the second kind and `deploy/build --shipped` the third. The figures depend on the program. Other load of the machine can
add to them, so a figure above its budget is measured again; the instructions of a debug build have no budget. Lower the
budgets when a push or a connection becomes cheaper.
"""

import json
import os
import struct
import sys
import tempfile
import time

from bench import instructions, push_load
from clients import steady_load
from clients.fleet_process import FleetProcess
from shared import processes

HERE = os.path.dirname(os.path.abspath(__file__))
BUDGETS = os.path.join(HERE, "budgets.json")
# Enough for the batches of a busy gateway.
CONNECTIONS = 10
# Connections, streams of each, pushes that warm up, pushes that count. The first is part of the test command. It has so
# many pushes at a time that their batches are large on a slow machine, too.
ALLOCATED = {
    "debug": (20, 128, 4_000, 20_000),
    "shipped": (push_load.CONNECTIONS, push_load.STREAMS, 50_000, 200_000),
}
# How often a figure above its budget is measured again, because other load of the machine can add to it.
ATTEMPTS = 3
# Enough that memory for many connections at once has little effect.
WORKERS = 1_000
# The time after which a connection is idle. It is shorter than the time from one keep-alive to the next.
QUIET_SECONDS = 3


def counted(_: str, products: str, store: str) -> float:
    """Counts the instructions of a push over h2c, because the cost of OpenSSL cannot be reduced here."""
    with tempfile.TemporaryDirectory() as folder:
        push_load.write_inputs(folder, CONNECTIONS)
        count, gateway = instructions.counted(products, folder, store)
        with gateway:
            base = f"http://{gateway.plain}"
            return instructions.each(count, gateway, base, folder, "gateway", CONNECTIONS)


class HeapCounter:
    """Counts a program's memory allocations, and the bytes that it holds, with a preloaded library.

    libnghttp2 takes its memory from a pool of each loop instead of the heap. Everything else counts, on every thread:
    TLS, checks, engine, store, history. Allocations are made for each batch and not for each push, so their number
    depends on the number of pushes per batch.
    """

    def __init__(self, folder: str):
        source, library = os.path.join(HERE, "count_allocations.c"), os.path.join(folder, "count_allocations.so")
        processes.compiled(source, library, "-shared", "-fPIC")
        self.path = os.path.join(folder, "count")
        with open(self.path, "wb") as file:
            file.write(bytes(16))
        # The command line of the program whose memory is counted.
        self.prefix = ["env", f"LD_PRELOAD={library}", f"ALLOCATIONS={self.path}"]

    def read(self) -> tuple[int, int]:
        """Returns the number of calls so far, and the bytes in use."""
        with open(self.path, "rb") as file:
            calls, held = struct.unpack("=qq", file.read(16))
        if calls == 0:
            raise SystemExit("no allocation was counted: the library was not loaded")
        return calls, held


def allocated(build: str, products: str, store: str) -> float:
    """Returns the heap allocations of a push in the steady state."""
    connections, streams, *phases = ALLOCATED[build]
    with tempfile.TemporaryDirectory() as folder:
        push_load.write_inputs(folder, connections)
        counter = HeapCounter(folder)
        with processes.Gateway(products, folder, counter.prefix, [f"store={store}"]) as gateway:
            taken = []
            for pushes in phases:
                shape = (connections, streams, pushes)
                push_load.run(f"https://{gateway.edge}", folder, "gateway", *shape, prefix=steady_load.LOAD_CORES)
                taken.append(counter.read()[0])
    return (taken[1] - taken[0]) / phases[1]


def held(_: str, products: str, scheme: str) -> float:
    """Returns the heap bytes of a worker's idle connection, including its state in the engine."""
    with tempfile.TemporaryDirectory() as folder:
        counter = HeapCounter(folder)
        with processes.Gateway(products, folder, counter.prefix, []) as gateway:
            address, options = (gateway.edge, ["tls"]) if scheme == "TLS" else (gateway.plain, [])
            # The first connections also take the memory that all share.
            with FleetProcess(folder, address, "com.example.first", 50, "by-device", *options):
                time.sleep(QUIET_SECONDS)
                before = counter.read()[1]
                with FleetProcess(folder, address, "com.example.idle", WORKERS, "by-device", *options):
                    time.sleep(QUIET_SECONDS)
                    return (counter.read()[1] - before) / WORKERS


# How each kind of budget is measured, and on what.
MEASURED = {
    "allocations": (allocated, "a push"),
    "instructions": (counted, "a push"),
    "bytes": (held, "a worker's idle connection"),
}


def main() -> None:
    build, products = sys.argv[1:]
    with open(BUDGETS, encoding="utf-8") as file:
        budgets = json.load(file)[build]
    passed = True
    for kind, by_shape in budgets.items():
        measure, of = MEASURED[kind]
        for shape, budget in by_shape.items():
            for _ in range(ATTEMPTS):
                each = measure(build, products, shape)
                if each <= budget:
                    break
            passed = passed and each <= budget
            print(f"{shape}: {each:,.2f} {kind} {of}, at most {budget:,}", flush=True)
    raise SystemExit(0 if passed else f"more is used than {BUDGETS} allows: fix it, or say in git why it must")


if __name__ == "__main__":
    main()
