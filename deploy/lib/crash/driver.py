"""Ends the gateway at random moments, again and again, and compares its counters with those of its clients.

deploy/soak and, in a short form, the test command call it.
"""

import argparse
import asyncio
import collections
import random
import signal
import tempfile
import time

from crash import ways
from crash.audit import Audit
from crash.ledger import KEPT, MIXED, MIXED_POLICY, POLICY, Ledger
from crash.load import Load
from shared import trial
from shared.processes import StartFailed
from shared.served_gateway import ServedGateway
from shared.verdicts import Verdicts

EVENTS = {"push": 400, "wake": 60, "result": 50, "change": 30}
SETTLE_SECONDS = 120
SETTINGS = {
    "registration": "explicit",
    "policy": POLICY,
    "topics": {MIXED: {"policy": MIXED_POLICY}},
}


class Crashes:
    """One state folder, one ledger, and any number of ends."""

    # The probability that the gateway is killed again while it starts.
    starting_kills = 0.2
    # The probability of a shutdown between kills, if random times are allowed.
    shutdown_share = 0.1

    def __init__(self, gateway: ServedGateway, devices: int, verdicts: Verdicts, seed: int):
        """A quarter of the devices are mixed."""
        self.gateway, self.verdicts, self.source = gateway, verdicts, random.Random(seed)
        self.ledger = Ledger(devices * 3 // 4, devices // 4)
        self.kills = self.kills_while_starting = self.shutdowns = 0
        self.start_seconds: list[float] = []
        # The least value of noWake after an end: the one that was seen more than a second before it.
        self.no_wake_least = 0
        self.environment: dict[str, str] = {}

    def load(self) -> Load:
        return Load(self.gateway, self.ledger, self.verdicts, self.source)

    def start(self) -> bool:
        name = "the gateway starts on what the end left"
        try:
            self.start_seconds.append(self.gateway.start(self.environment))
            return self.verdicts.check(name, True, "")
        except StartFailed as failure:
            return self.verdicts.check(name, False, str(failure))

    async def begin(self) -> None:
        """Starts for the first time and registers every device, so that both topics exist."""
        self.start_seconds.append(self.gateway.start(self.environment))
        await self.load().register_all()

    # The number of pushes with a complete known history that are checked again after each end; None for all.
    ways_again_max: int | None = ways.AGAIN_MAX

    async def audit(self, is_restart: bool = True) -> None:
        load = self.load()
        await Audit(load, is_restart, self.ways_again_max if is_restart else None).run()
        _, no_wake = load.no_wake_seen[-1]
        most = self.ledger.no_wake + self.ledger.no_wake_perhaps
        name = "noWake loses no more than the last second"
        self.verdicts.within(name, "noWake", no_wake, self.no_wake_least, most)
        self.ledger.no_wake, self.ledger.no_wake_perhaps = no_wake, 0
        self.no_wake_least = no_wake

    async def work_until(self, moment: asyncio.Event, load: Load) -> float:
        """Runs the load until `moment`, ends the gateway then, and waits until every client has noticed."""
        running = asyncio.create_task(load.run())
        waiting = asyncio.create_task(moment.wait())
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await self.end(load)
        ended_at = time.monotonic()
        await running
        return ended_at

    async def end(self, load: Load) -> None:
        """Ends the gateway in the way of this kind of run; power loss overrides it."""
        self.gateway.process.kill()

    def between(self) -> None:
        """Runs between the end of the gateway and its next start."""

    def moment(self, load: Load, by_time: bool) -> asyncio.Event:
        """Returns an event that is set after a random number of events of a random kind or, half the time if allowed,
        after a random duration."""
        event = asyncio.Event()
        if by_time and self.source.random() < 0.5:
            asyncio.get_running_loop().call_later(0.02 + self.source.random() * 1.5, event.set)
            return event
        kind = self.source.choice(list(EVENTS))
        left = self.source.randint(1, EVENTS[kind])

        def count(happened: str) -> None:
            nonlocal left
            left -= happened == kind
            if left <= 0:
                event.set()

        load.on_event = count
        return event

    async def round(self, by_time: bool) -> bool:
        """Works, kills, starts and compares; returns false if a check failed."""
        load = self.load()
        if by_time and self.source.random() < self.shutdown_share:
            await self.shut_down(load)
        else:
            ended_at = await self.work_until(self.moment(load, by_time), load)
            self.gateway.wait()
            self.kills += 1
            older = [value for seen, value in load.no_wake_seen if seen < ended_at - 2]
            self.no_wake_least = max([self.no_wake_least, *older])
        if self.source.random() < self.starting_kills:
            self.kill_while_starting()
        self.between()
        if not self.start():
            return False
        await self.audit()
        return self.books_agree

    @property
    def books_agree(self) -> bool:
        """True until a comparison of counters fails. They then differ permanently, and every further comparison would
        report it again. The histories of pushes are compared individually."""
        return not self.verdicts.failures.keys() - set(ways.NAMES)

    def kill_while_starting(self) -> None:
        self.gateway.launch(self.environment)
        typical = sum(self.start_seconds) / len(self.start_seconds)
        time.sleep(self.source.random() * typical)
        self.gateway.end(signal.SIGKILL)
        self.kills_while_starting += 1

    async def shut_down(self, load: Load) -> None:
        """Sends SIGTERM under load: the exit status must be 0, and the same checks must pass."""
        running = asyncio.create_task(load.run())
        await asyncio.sleep(self.source.random())
        load.is_draining = True
        self.gateway.process.send_signal(signal.SIGTERM)
        status = await asyncio.to_thread(self.gateway.wait)
        await running
        self.verdicts.equal("SIGTERM under load ends with 0", "exit status", status, 0)
        self.no_wake_least = max([self.no_wake_least, *(value for _, value in load.no_wake_seen)])
        self.shutdowns += 1

    async def settle(self) -> None:
        """Waits without new pushes until everything pending was woken, which the counters must show."""
        load = self.load()
        load.is_settling = True
        running = asyncio.create_task(load.run())
        admin = await load.connect(self.gateway.admin, None)
        name = "in the end every kept push has been woken"
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            pushes = (await admin.request("GET", f"/v1/stats/topics/{KEPT}")).json()["pushes"]
            waiting = pushes["pending"] + pushes["inFlight"]
            if not waiting or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.05)
        self.verdicts.equal(name, "pushes that wait", waiting, 0)
        ended = pushes["completed"] + pushes["coalesced"]
        self.verdicts.equal(name, "completed and coalesced", ended, pushes["accepted"])
        await load.stop()
        await running
        await self.audit(is_restart=False)

    def tell(self) -> None:
        """Adds the figures of the whole run as a separate check."""
        ledger = self.ledger
        name = "every acknowledged push is present and its way told"
        faults = f"{ledger.missing:,} missing, {ledger.untold:,} ways unknown, {ledger.told_wrongly:,} told wrongly"
        self.verdicts.check(name, not ledger.missing + ledger.untold + ledger.told_wrongly, faults)
        ends = collections.Counter(push.ending[0] for push in ledger.ended_pushes if push.ending)
        ended = ", ".join(f"{count:,} {state}" for state, count in sorted(ends.items()))
        self.verdicts.note(
            name, f"{self.kills} ends of the process, {ledger.answered:,} acknowledged, {faults}; told: {ended}, "
            f"{len(ledger.open_pushes):,} waiting",
        )  # fmt: skip
        print(f"      {self.summary()}")

    def summary(self) -> str:
        ledger, outcomes = self.ledger, self.ledger.outcomes()
        return (
            f"{self.kills} kills, {self.kills_while_starting} more while starting, {self.shutdowns} shutdowns; "
            f"{ledger.answered:,} pushes answered 200, {ledger.unanswered:,} unanswered; {len(ledger.wakes):,} wakes: "
            + ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.items())
            + f"; {ledger.results_answered:,} results and {ledger.changes_answered:,} changes answered; "
            f"starts took at most {max(self.start_seconds):.2f} s"
        )


async def run(program: str, folder: str, verdicts: Verdicts, options: argparse.Namespace) -> None:
    gateway = ServedGateway(program, folder, {**SETTINGS, "store": options.store})
    crashes = Crashes(gateway, options.devices, verdicts, options.seed)
    try:
        await crashes.begin()
        rounds = 0
        while crashes.kills < options.kills and rounds < options.kills * 3:
            rounds += 1
            if not await crashes.round(options.by_time):
                break
        else:
            await crashes.settle()
    finally:
        gateway.end(signal.SIGKILL)
    verdicts.equal("as many kills as were asked for", "kills", crashes.kills, options.kills)
    crashes.tell()


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    everything = argparse.Namespace(**{"store": "sqlite", "devices": 240, "by_time": True, **vars(options)})
    with tempfile.TemporaryDirectory(prefix="wakegate-crash.") as folder:
        asyncio.run(run(program, folder, verdicts, everything))
    return verdicts


if __name__ == "__main__":
    # With the store `memory`, the checks must find faults. `by_time` also kills after random times, with shutdowns
    # between.
    trial.run("crash", soak, kills=8, devices=80, store="sqlite", by_time=False)
