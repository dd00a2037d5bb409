"""Counts the heap allocations of a push, in the steady state.

libnghttp2 takes its memory from a pool of each loop, which is not the heap; all else counts, on every thread: TLS,
checks, engine, store, history. What there is goes by the batch and not by the push, so that it depends on how many go
together.
"""

import os
import struct
import subprocess

from bench import push_load
from clients import h2load, steady_load
from shared import processes

STREAMS = 32


def preload(folder: str) -> str:
    library = os.path.join(folder, "count_allocations.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count_allocations.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def counted(path: str) -> int:
    return counts(path)[0]


def held(path: str) -> int:
    """The bytes of the heap that are in use."""
    return counts(path)[1]


def counts(path: str) -> tuple[int, int]:
    with open(path, "rb") as file:
        return struct.unpack("=qq", file.read(16))


def counting(folder: str, name: str) -> tuple[str, list[str]]:
    """The file of the counts, and what starts a program that is counted."""
    path = os.path.join(folder, f"{name}.count")
    with open(path, "wb") as file:
        file.write(bytes(16))
    return path, ["env", f"LD_PRELOAD={preload(folder)}", f"ALLOCATIONS={path}"]


def each(products: str, folder: str, store: str, warm_up: int, pushes: int) -> float:
    push_load.write_inputs(folder)
    place = os.path.join(folder, store)
    os.mkdir(place)
    count, prefix = counting(folder, store)
    with processes.Gateway(products, place, prefix, [f"store={store}"]) as gateway:
        base, uris, body = f"https://{gateway.edge}", os.path.join(folder, "gateway"), os.path.join(folder, "body")

        def push(number: int) -> None:
            h2load.run(
                base, uris, body, push_load.headers(), push_load.CONNECTIONS, STREAMS, number, steady_load.LOAD_CORES
            )

        push(warm_up)
        before = counted(count)
        if before == 0:
            raise SystemExit("no allocation was counted: the library was not loaded")
        push(pushes)
        return (counted(count) - before) / pushes
