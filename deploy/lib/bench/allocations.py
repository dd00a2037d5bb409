"""Counts the heap allocations of a push, in the steady state, and holds them against a budget.

python allocations.py PRODUCTS, the folder of a release build. libnghttp2 takes its memory from a pool of each loop,
which is not the heap; all else counts, on every thread: TLS, checks, engine, store, history.
"""

import os
import struct
import subprocess
import sys
import tempfile

from bench import push_load
from clients import h2load, steady_load
from shared import processes

# For each store. What is left is by the batch and not by the push, so that it depends on how many go together.
BUDGET = {"memory": 2.0, "sqlite": 2.0}
WARM_UP, PUSHES = 50_000, 200_000
STREAMS = 32


def preload(folder: str) -> str:
    library = os.path.join(folder, "count_allocations.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count_allocations.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def counted(path: str) -> int:
    with open(path, "rb") as file:
        return struct.unpack("=q", file.read(8))[0]


def measure(products: str, folder: str, store: str) -> dict:
    push_load.write_inputs(folder)
    place, count = os.path.join(folder, store), os.path.join(folder, f"{store}.count")
    os.mkdir(place)
    with open(count, "wb") as file:
        file.write(bytes(8))
    prefix = ["env", f"LD_PRELOAD={preload(folder)}", f"ALLOCATIONS={count}"]
    with processes.Gateway(products, place, prefix, [f"store={store}"]) as gateway:
        base, uris, body = f"https://{gateway.edge}", os.path.join(folder, "gateway"), os.path.join(folder, "body")

        def push(number: int) -> None:
            h2load.run(
                base, uris, body, push_load.headers(), push_load.CONNECTIONS, STREAMS, number, steady_load.LOAD_CORES
            )

        push(WARM_UP)
        before = counted(count)
        if before == 0:
            raise SystemExit("no allocation was counted: the library was not loaded")
        push(PUSHES)
        each = (counted(count) - before) / PUSHES
    return {"store": store, "allocations": round(each, 2), "budget": BUDGET[store], "passed": each <= BUDGET[store]}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(sys.argv[1], folder, store) for store in BUDGET]
    for row in rows:
        print("{store}: {allocations} allocations a push, at most {budget:g}".format(**row))
    raise SystemExit(0 if all(row["passed"] for row in rows) else 1)


if __name__ == "__main__":
    main()
