"""Holds what a push takes against its budgets in git, `budgets.json`: heap allocations, and instructions; and bytes of
the heap what a worker's idle connection takes.

python -m bench.budgets debug|shipped PRODUCTS, the folder of such a build, of which the second is what `deploy/build
--shipped` makes. All figures hang on the program, and hardly on what else the machine does, but for the instructions of
a debug build, which have no budget. Whoever makes a push or a connection cheaper lowers the budgets.
"""

import json
import os
import sys
import tempfile

from bench import allocations, instructions, push_load, streams

BUDGETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "budgets.json")
# Enough that the batches are those of a gateway at work, and few enough for a debug build under callgrind.
CONNECTIONS = 10
COUNTED = {"debug": (1_000, 1_000, 4_000), "shipped": (10_000, 10_000, 40_000)}
ALLOCATED = {"debug": (2_000, 10_000), "shipped": (50_000, 200_000)}
# Enough that what is taken for many connections at a time hardly counts.
WORKERS = 1_000


def counted(build: str, products: str, store: str) -> float:
    """Instructions of a push over h2c: OpenSSL's are not ours to save."""
    with tempfile.TemporaryDirectory() as folder:
        push_load.write_inputs(folder, CONNECTIONS)
        count, gateway = instructions.counted(products, folder, store)
        with gateway:
            uris, body = os.path.join(folder, "gateway"), os.path.join(folder, "body")
            base = f"http://{gateway.plain}"
            return instructions.each(count, gateway, base, uris, body, CONNECTIONS, COUNTED[build])


def allocated(build: str, products: str, store: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return allocations.each(products, folder, store, *ALLOCATED[build])


def held(_: str, products: str, scheme: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return streams.held_bytes(products, folder, scheme, WORKERS)


# How each kind is measured, and of what.
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
            each = measure(build, products, shape)
            passed = passed and each <= budget
            print(f"{shape}: {each:,.2f} {kind} {of}, at most {budget:,}", flush=True)
    raise SystemExit(0 if passed else f"more is taken than {BUDGETS} grants: mend it, or say in git why it must")


if __name__ == "__main__":
    main()
