"""The start with a million devices whose tokens somebody chose, beside a million random ones.

The chosen tokens all collide in a hash that multiplies words with constants that are in the source, under any seed.
"""

import os
import random
import signal
import statistics
import time
from collections.abc import Callable

from bench import million, push_load
from clients import h2load
from shared import processes

RATIO_TARGET = 2.0
RUNS = 3
FACTOR = (0xA0761D6478BD642F).to_bytes(8, "little").hex()


def chosen(source: random.Random) -> str:
    return f"{FACTOR}{source.getrandbits(64):016x}{FACTOR}{source.getrandbits(64):016x}"


def registered(products: str, folder: str, token: Callable[[random.Random], str]) -> float:
    """Pushes to a million devices and kills the gateway; the seconds that the pushes took."""
    push_load.write_pushes(folder, "uris", million.DEVICES, million.CONNECTIONS, seed=5, token=token)
    uris, body = os.path.join(folder, "uris"), os.path.join(folder, "body")
    with processes.Gateway(products, folder, [], ["store=sqlite"]) as gateway:
        base = f"http://{gateway.plain}"
        took = h2load.run(
            base, uris, body, push_load.headers(), million.CONNECTIONS, million.STREAMS, million.DEVICES
        )
        kill(gateway)
    return took


def kill(gateway: processes.Gateway) -> None:
    gateway.process.send_signal(signal.SIGKILL)
    gateway.process.wait()


def start(products: str, folder: str) -> float:
    """Seconds until a gateway on what is there is ready."""
    started = time.monotonic()
    with processes.Gateway(products, folder, [], ["store=sqlite"]) as gateway:
        took = time.monotonic() - started
        kill(gateway)
    return took


def measure(products: str, folder: str) -> dict:
    kinds = {"random": push_load.random_token, "chosen": chosen}
    places = {name: os.path.join(folder, name) for name in kinds}
    for place in places.values():
        os.mkdir(place)
    pushes = {name: registered(products, places[name], token) for name, token in kinds.items()}
    starts = {name: [] for name in kinds}
    for _ in range(RUNS):
        for name, place in places.items():
            starts[name].append(start(products, place))
    medians = {name: statistics.median(values) for name, values in starts.items()}
    ratio = medians["chosen"] / medians["random"]
    return {
        "devices": million.DEVICES, "pushSeconds": pushes, "readySeconds": medians, "ratio": round(ratio, 3),
        "target": RATIO_TARGET, "passed": ratio <= RATIO_TARGET,
    }  # fmt: skip
