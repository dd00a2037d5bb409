"""A reload each second under a thousand pushes a second: no error, no connection that ends, and each new policy in force."""

import argparse
import asyncio
import os
import signal
import tempfile
import time

from bench import push_load
from bench.streams import FleetProcess
from clients import h2load, steady_load
from clients.h2_client import Client
from crash import ledger
from shared.served_gateway import ServedGateway
from shared.verdicts import Verdicts

# The topic of the load, as push_load has it, and one of a single device that is asked which policy decides.
TOPIC, ASKED_TOPIC = "com.example.bench", "com.example.asked"
ASKED = "a5" * 32
DEVICES = 1000
PUSHES_A_SECOND, CONNECTIONS, STREAMS = 1000, 10, 32
RELOADS = 12
# The load begins before the first reload and outlasts the last one.
PUSHES = PUSHES_A_SECOND * (RELOADS + 5)
# Of the rate that is asked for; h2load lets a few pushes slip from one moment to the next.
RATE_SHARE_MIN = 0.99
WORKERS, SLOTS = 4, 64
# Seconds between launches by turns: of the device that is asked, whose second push waits under both, and of the others,
# whose pushes wait under the one and launch under the other, which is the first and the last.
ASKED_INTERVALS, INTERVALS = (3600, 1800), (2, 3600)
IN_FORCE_SECONDS = SETTLE_SECONDS = 30


def policies(turn: int) -> dict:
    return {
        "policy": {"launchInterval": ASKED_INTERVALS[turn % 2]},
        "topics": {TOPIC: {"policy": {"launchInterval": INTERVALS[turn % 2]}}},
    }


def client_ports(address: str) -> set[int]:
    """The ports of everybody who is connected to `address`: one that comes again has another."""
    port = f":{int(address.rpartition(':')[2]):04X}"
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    # In the order of proc(5): the own address, the other's, and the state, of which 1 is established.
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[2].endswith(port) and row[3] == "01"}


class Reloads:
    def __init__(self, gateway: ServedGateway, folder: str, verdicts: Verdicts):
        self.gateway, self.folder, self.verdicts = gateway, folder, verdicts
        self.admin: Client
        # Seconds since the epoch, as h2load has them: of the first signal, and when the last policy was in force.
        self.began = self.ended = 0.0
        self.took: list[float] = []
        # When each push was answered, likewise.
        self.ends: list[float] = []

    async def ask(self, path: str) -> dict:
        return (await self.admin.request("GET", path)).json()

    async def until(self, what: str, holds, seconds: float) -> bool:
        """Asks again and again; false when `seconds` pass first, which is a failure of the check `what`."""
        deadline = time.monotonic() + seconds
        while not (is_so := await holds()) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        return self.verdicts.check(what, is_so, f"not within {seconds} s")

    async def make_wait(self) -> None:
        """Two pushes of the device that is asked: one is launched, the other waits by whatever policy is in force."""
        client = await Client.connect(self.gateway.addresses.edge, self.gateway.addresses.ca)
        fields = [("apns-topic", ASKED_TOPIC), ("apns-push-type", "background"), ("apns-priority", "5")]
        for _ in range(2):
            response = await client.request("POST", f"/3/device/{ASKED}", push_load.payload(), fields)
            self.verdicts.equal("every push is answered 200", "a first push", response.status, 200)

            async def is_over() -> bool:
                return (await self.ask(f"/v1/devices/{ASKED}"))["inFlight"] is None

            await self.until("the first wake of the device that is asked ends", is_over, SETTLE_SECONDS)
        await client.close()

    async def reload_all(self) -> None:
        """While the load lasts."""
        edge, verdicts = self.gateway.addresses.edge, self.verdicts

        async def is_under_load() -> bool:
            return (await self.ask("/v1/stats"))["pushes"]["accepted"] > PUSHES_A_SECOND

        if not await self.until("the load begins", is_under_load, SETTLE_SECONDS):
            return
        version = (await self.ask(f"/v1/devices/{ASKED}"))["policyVersion"]
        before = client_ports(edge)
        self.began, first = time.time(), time.monotonic()
        for turn in range(1, RELOADS + 1):
            await asyncio.sleep(max(0, first + turn - 1 - time.monotonic()))
            if not await self.reload(turn, version + turn):
                return
        self.ended = time.time()
        after = client_ports(edge)
        name = "every connection of before the first reload is there after the last"
        verdicts.equal(name, "providers and workers", len(before), CONNECTIONS + WORKERS + 1)
        verdicts.equal(name, "ports of before that are gone", sorted(before - after), [])
        verdicts.equal(name, "ports that have come", sorted(after - before), [])
        verdicts.note(name, f"{len(before)} connections")

    async def reload(self, turn: int, version: int) -> bool:
        """False when it did not come into force."""
        self.gateway.write(policies(turn))
        sent = time.monotonic()
        self.gateway.process.send_signal(signal.SIGHUP)
        answer: dict = {}

        async def is_in_force() -> bool:
            nonlocal answer
            answer = await self.ask(f"/v1/devices/{ASKED}")
            return answer["policyVersion"] == version

        name = "each SIGHUP raises policyVersion by one"
        if not await self.until(name, is_in_force, IN_FORCE_SECONDS):
            return False
        self.took.append(time.monotonic() - sent)
        self.verdicts.note(name, f"the slowest after {max(self.took) * 1000:.0f} ms, asking included")
        apart = (answer["nextEligibleAt"] - answer["lastLaunchAt"]) / 1000
        name = "the device that is asked waits by the new policy"
        return self.verdicts.equal(name, f"after reload {turn} its interval", apart, ASKED_INTERVALS[turn % 2])

    def push_all(self) -> None:
        """The load; any answer but a 2xx ends it."""
        name = "every push is answered 200"
        uris, body = os.path.join(self.folder, "paths"), os.path.join(self.folder, "body")
        base = f"https://{self.gateway.addresses.edge}"
        try:
            h2load.run(
                base, uris, body, push_load.headers(), CONNECTIONS, STREAMS, PUSHES,
                rate=PUSHES_A_SECOND // CONNECTIONS, logs=self.folder,
            )  # fmt: skip
        except SystemExit as failure:
            self.verdicts.check(name, False, str(failure)[-600:])
            return
        logs = [steady_load.read(os.path.join(self.folder, str(number))) for number in range(CONNECTIONS)]
        statuses = [status for log in logs for status in log.statuses]
        self.verdicts.equal(name, "answers", len(statuses), PUSHES)
        self.verdicts.equal(name, "kinds of answers", set(statuses), {"200"})
        slowest = max(took for log in logs for took in log.took)
        self.verdicts.note(name, f"{PUSHES:,} pushes, the slowest in {slowest / 1000:.1f} ms")
        self.ends = sorted(end / 1e6 for log in logs for end in log.ends)

    def compare_rate(self) -> None:
        between = [end for end in self.ends if self.began <= end <= self.ended]
        rate = len(between) / (self.ended - self.began)
        name = f"{PUSHES_A_SECOND:,} pushes a second while it reloads"
        self.verdicts.check(name, rate >= PUSHES_A_SECOND * RATE_SHARE_MIN, f"{rate:.0f} a second")
        self.verdicts.note(name, f"{rate:.0f} a second for {self.ended - self.began:.1f} s")
        name = "the load outlasts the last reload"
        self.verdicts.check(name, self.ends[-1] > self.ended, f"it ended {self.ended - self.ends[-1]:.1f} s before")

    async def compare_books(self) -> None:
        """The last policy lets everything launch, but what waits for the device that is asked."""
        stats: dict = {}

        async def has_settled() -> bool:
            nonlocal stats
            stats = await self.ask("/v1/stats")
            return (stats["pushes"]["pending"], stats["pushes"]["inFlight"]) == (1, 0)

        pushes, name = PUSHES + 2, "in the end the books balance"
        await self.until(name, has_settled, SETTLE_SECONDS)
        fault = ledger.imbalance(stats)
        self.verdicts.check(name, fault is None, fault or "")
        self.verdicts.equal(name, "accepted", stats["pushes"]["accepted"], pushes)
        ended = stats["pushes"]["completed"] + stats["pushes"]["coalesced"]
        self.verdicts.equal(name, "completed and coalesced", ended, pushes - 1)
        launched = stats["wakes"]["launched"]
        # Without the shorter interval a device would have been launched once.
        self.verdicts.check(name, launched > DEVICES * 2, f"{launched} wakes are too few for the policies")
        self.verdicts.note(name, f"{launched:,} wakes")

    def compare_log(self) -> None:
        lines = self.gateway.errors().splitlines()
        name = "the log has each reload, and nothing to worry about"
        self.verdicts.equal(name, "lines reloaded", sum(" info reloaded " in line for line in lines), RELOADS)
        worries = [line for line in lines if " warning " in line or " error " in line]
        self.verdicts.equal(name, "warnings and errors", worries, [])


async def run(program: str, folder: str, verdicts: Verdicts) -> None:
    push_load.write_pushes(folder, "paths", DEVICES, CONNECTIONS, seed=8)
    gateway = ServedGateway(program, folder, {"registration": "open", **policies(0)})
    gateway.start()
    reloads, fleets = Reloads(gateway, folder, verdicts), []
    try:
        for topic, connections in ((TOPIC, WORKERS), (ASKED_TOPIC, 1)):
            fleet = FleetProcess(
                address=gateway.addresses.edge, ca=gateway.addresses.ca, topic=topic, connections=connections,
                slots=SLOTS, by_device=False,
            )  # fmt: skip
            fleets.append(fleet)
            await asyncio.to_thread(fleet.next, "subscribed", SETTLE_SECONDS)
        reloads.admin = await Client.connect(gateway.addresses.admin)
        await reloads.make_wait()
        load = asyncio.create_task(asyncio.to_thread(reloads.push_all))
        await reloads.reload_all()
        await load
        if verdicts.passed:
            reloads.compare_rate()
            await reloads.compare_books()
            reloads.compare_log()
        await reloads.admin.close()
    finally:
        for fleet in fleets:
            fleet.__exit__()
        gateway.end(signal.SIGKILL)


def soak(program: str, _: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="wakegate-reload.") as folder:
        asyncio.run(run(program, folder, verdicts))
    return verdicts
