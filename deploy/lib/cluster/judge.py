"""The rules that a cluster must have kept once the load has stopped and every push has ended."""

import asyncio
import json
import random
import time

from clients import http1
from cluster.gateways import LAUNCH_INTERVAL
from cluster.ledger import RESULTS, Device
from cluster.load import Load, counts

SETTLE_SECONDS = 90
MISSING = "no acknowledged push is missing: the counters contain them all"
BY_DEVICE = "no acknowledged push is missing: each device's wakes carried them all"
TOLD = "each acknowledged push has its way in the delivery log"
EQUAL = "all gateways report the same counters"
SETTLED = "everything pending comes to its end"
ONCE = "no wake is delivered twice, by one gateway or by two"
INTERVAL = "no device is launched twice within its interval"
NAMED = "every answer 200 has an apns-id of its own"
EXPECTED = "nothing is answered but what may be"
COUNTED = "the counters have no more wakes with a result than workers got answers"


class Judge:
    def __init__(self, load: Load, ways: int, source: random.Random):
        """`ways` limits the number of acknowledged pushes whose history is read."""
        self.load, self.ledger, self.verdicts = load, load.ledger, load.verdicts
        self.ways, self.source = ways, source
        self.asked_again = 0

    async def run(self) -> None:
        """Runs after the last push, while workers are still connected."""
        stats = await self.settle()
        await self.load.stop()
        if stats:
            self.compare_books(stats)
        self.compare_devices()
        await self.load.read_deadlines()
        self.compare_wakes()
        await self.compare_ways()
        ledger = self.ledger
        for each in ledger.unexpected:
            self.verdicts.check(EXPECTED, False, each)
        self.verdicts.check(EXPECTED, True, "")
        refused = ", ".join(f"{count:,} times {status}" for status, count in sorted(ledger.refused.items())) or "none"
        self.verdicts.note(
            EXPECTED,
            f"refused: {refused}; {ledger.without_answer:,} left without an answer; {ledger.repaired:,} of all these "
            "answered 200 when sent again",
        )

    async def settle(self) -> list[dict]:
        """Returns the counters of each gateway, once nothing is waiting or in flight."""
        pool = http1.Pool()
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            all_stats = [await self.load.read(number, pool) for number in range(self.load.count)]
            waiting = [
                stats["pushes"]["pending"] + stats["pushes"]["inFlight"] if stats else None for stats in all_stats
            ]
            if not any(count is None or count for count in waiting) and not self.load.results.qsize():
                break
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(0.2)
        pool.close()
        self.verdicts.equal(SETTLED, f"pending and in flight {SETTLE_SECONDS} s after the last push",
                            waiting, [0] * self.load.count)  # fmt: skip
        return [stats for stats in all_stats if stats]

    def compare_books(self, all_stats: list[dict]) -> None:
        first = all_stats[0]
        for number, stats in enumerate(all_stats):
            for part in ("pushes", "wakes"):
                told, expected = ({**each[part], "rejected": None} for each in (stats, first))
                self.verdicts.equal(EQUAL, f"{part} of gateway {number}", told, expected)
        ledger = self.ledger
        accepted = first["pushes"]["accepted"]
        most = ledger.count + len(ledger.perhaps)
        self.verdicts.within(MISSING, "accepted", accepted, ledger.count, most)
        self.verdicts.note(
            MISSING,
            f"{ledger.count:,} acknowledged, {max(0, ledger.count - accepted):,} missing; of {len(ledger.perhaps):,} "
            f"left open {max(0, accepted - ledger.count):,} were taken",
        )
        completed = sum(wake.outcome in RESULTS for wake in ledger.wakes.values())
        unknown = sum(wake.outcome in (None, "unknown") for wake in ledger.wakes.values())
        results = first["wakes"]["results"]
        self.verdicts.within(COUNTED, "newData", results["newData"], completed, completed + unknown)
        self.verdicts.note(COUNTED, ", ".join(f"{name} {count:,}" for name, count in results.items() if count))

    def compare_devices(self) -> None:
        for device in self.ledger.devices:
            carried = sum(1 + wake.coalesced for wake in device.wakes if wake.outcome in RESULTS)
            doubtful = sum(1 + wake.coalesced for wake in device.wakes if wake.outcome in (None, "unknown"))
            least, most = device.accepted - doubtful, device.accepted + device.perhaps
            if device.is_fleeting:
                least = 0
            self.verdicts.within(BY_DEVICE, f"pushes that wakes of {device.token} carried", carried, least, most)

    def compare_wakes(self) -> None:
        ledger = self.ledger
        self.verdicts.check(ONCE, True, "")
        for each in ledger.repeated_wakes:
            self.verdicts.check(ONCE, False, each)
        shares = [sum(wake.gateway == number for wake in ledger.wakes.values()) for number in range(self.load.count)]
        self.verdicts.note(ONCE, f"{len(ledger.wakes):,} wakes, by gateway {', '.join(f'{n:,}' for n in shares)}")
        self.verdicts.check(NAMED, not ledger.twice_named, f"answered twice: {ledger.twice_named[:5]}")
        for device in ledger.devices:
            self.compare_launches(device)
        self.verdicts.note(INTERVAL, f"{len(ledger.deadlines):,} wakes looked up, because they seemed close to others")

    def compare_launches(self, device: Device) -> None:
        launches = sorted((wake for wake in device.wakes), key=lambda wake: wake.launched_at)
        counted = [wake for wake in launches if counts(wake)]
        for wake, following in zip(counted, counted[1:]):
            apart = self.ledger.apart(wake, following)
            detail = (
                f"{device.token}: {wake.id} by gateway {wake.gateway}, ended {wake.outcome}, and {following.id} by "
                f"gateway {following.gateway}, ended {following.outcome}, {apart} ms apart"
            )
            self.verdicts.check(INTERVAL, apart >= LAUNCH_INTERVAL * 1000, detail)

    def discarded(self, name: str) -> tuple[str, ...]:
        """Returns the other outcomes that a push may have, which depend on its device."""
        return ("discarded",) if self.ledger.acknowledged[name].is_fleeting else ()

    async def read_ways(self, number: int, names: list[str]) -> list[tuple[int, dict]]:
        """Returns the answers of one gateway about these pushes; an answer of 503 is retried once."""
        address = self.load.gateways.all[number].admin
        answers = await http1.read_all(address, [f"/v1/pushes/{name}" for name in names])
        again = [place for place, (status, _) in enumerate(answers) if status == 503]
        self.asked_again += len(again)
        for place, answer in zip(
            again, await http1.read_all(address, [f"/v1/pushes/{names[place]}" for place in again]), strict=True
        ):
            answers[place] = answer
        return answers

    async def compare_ways(self) -> None:
        asked = list(self.ledger.acknowledged)
        if len(asked) > self.ways:
            asked = self.source.sample(asked, self.ways)
        started = time.monotonic()
        known = True
        for number in range(self.load.count):
            some = asked[number :: self.load.count]
            try:
                answers = await self.read_ways(number, some)
            except (OSError, asyncio.IncompleteReadError, json.JSONDecodeError) as error:
                known = self.verdicts.check(TOLD, False, f"gateway {number} did not answer: {error!r}")
                continue
            for name, (status, way) in zip(some, answers, strict=True):
                ended = status == 200 and way["state"] in ("completed", "coalesced", *self.discarded(name))
                detail = f"push {name}, asked of gateway {number}: {status} {way.get('state')} {way.get('reason')}"
                self.verdicts.check(TOLD, ended, detail)
        if known and asked:
            took = time.monotonic() - started
            self.verdicts.note(
                TOLD,
                f"of {self.ledger.count:,} acknowledged; {len(asked) / took:,.0f} a second; {self.asked_again} asked "
                "twice, because they were answered 503 first",
            )
