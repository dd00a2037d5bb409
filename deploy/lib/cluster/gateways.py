"""Several gateways on one database, each with its own configuration, state folder and ports."""

import os
from contextlib import AbstractContextManager

from shared.served_gateway import ServedGateway

# Wakes of a device are two seconds apart, for all pushes, and no push is ever given up.
LAUNCH_INTERVAL, EXECUTION_WINDOW = 2, 5
POLICY = {
    "launchInterval": LAUNCH_INTERVAL, "maxInterval": LAUNCH_INTERVAL, "dailyLaunches": 1_000_000,
    "executionWindow": EXECUTION_WINDOW, "maxAttempts": 100_000, "maxPenalty": 1,
}  # fmt: skip
SETTINGS = {"registration": "open", "plain": "127.0.0.1:0", "policy": POLICY}


class Gateways(AbstractContextManager):
    """The gateways, which have the same policies. Pushes, subscriptions and results go to their cleartext addresses."""

    def __init__(self, program: str, folder: str, stores: list[str], settings: dict | None = None):
        self.all: list[ServedGateway] = []
        for number, store in enumerate(stores):
            place = os.path.join(folder, f"gateway{number}")
            os.mkdir(place)
            self.all.append(ServedGateway(program, place, {**SETTINGS, **(settings or {}), "store": store}))

    def __exit__(self, *_: object) -> None:
        for gateway in self.all:
            gateway.end(9)

    def start(self) -> None:
        for gateway in self.all:
            gateway.start()
