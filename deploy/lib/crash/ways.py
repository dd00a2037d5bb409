"""The delivery log compared with the ledger: every accepted push has one history, with one end."""

import collections
import random

from clients import http1
from crash.ledger import KEPT, RESULTS, TOPICS, Ledger, Push, Wake
from crash.load import Load

TOLD = "every push that was answered 200 has its way in the delivery log"
RIGHT = "each way ends once, and is what providers and workers saw"
BALANCED = "the histories add up to the counters, outcome by outcome"
LISTED = "a device's list of pushes tells the same"
NAMES = (TOLD, RIGHT, BALANCED, LISTED)

ENDS = ("completed", "noWake", "coalesced", "discarded")
# The number of pushes with a known end that are looked up again.
AGAIN_MAX = 2000


class Ways:
    """A check of the delivery log of a gateway that has no other clients."""

    def __init__(self, load: Load, explained: dict[int, dict], again_max: int | None):
        """`explained` is the preceding answer to GET /v1/devices/<token> by the device's number. `again_max` limits
        the number of pushes with a known end that are read again, chosen at random; None reads all."""
        self.load, self.explained, self.again_max = load, explained, again_max
        self.ledger: Ledger = load.ledger
        self.verdicts = load.verdicts

    async def run(self) -> None:
        before = await self.statistics()
        asked, self.ledger.open_pushes = self.ledger.open_pushes, []
        await self.ask(asked)
        # A push that was missing once is not counted again.
        again = [push for push in self.ledger.ended_pushes if push.is_told]
        if self.again_max is not None and len(again) > self.again_max:
            again = random.Random(len(again)).sample(again, self.again_max)
        await self.ask(again)
        self.ledger.ended_pushes += [push for push in asked if push.ending]
        if not self.ledger.untold and not self.ledger.told_wrongly:
            self.balance(before, await self.statistics())
        await self.lists()

    async def answers(self, paths: list[str]) -> list[tuple[int, dict]]:
        return await http1.read_all(self.load.gateway.admin, paths)

    async def statistics(self) -> dict[str, collections.Counter]:
        """Returns the number of pushes of each topic by outcome, and of waiting pushes."""
        answers = await self.answers([f"/v1/stats/topics/{topic}" for topic in TOPICS])
        ends: dict[str, collections.Counter] = {}
        for topic, (status, stats) in zip(TOPICS, answers, strict=True):
            counts = ends[topic] = collections.Counter()
            if status == 200:
                pushes = stats["pushes"]
                counts.update({(state, None): pushes[state] for state in ("completed", "coalesced")})
                counts.update({("discarded", reason): count for reason, count in pushes["discarded"].items()})
                counts["waiting", None] = pushes["pending"] + pushes["inFlight"]
        return ends

    async def ask(self, pushes: list[Push]) -> None:
        """Reads pushes. An end that was reported before must be unchanged."""
        answers = await self.answers([f"/v1/pushes/{push.apns_id}" for push in pushes])
        for push, (status, way) in zip(pushes, answers, strict=True):
            if status != 200:
                # A push without an answer is never sent again. If it is unknown now, it was not accepted.
                if push.disposition is not None or push.is_told:
                    self.ledger.untold += 1
                    push.is_told = False
                    what = f"push {push.apns_id}, answered {push.disposition}, is answered {status}"
                    self.verdicts.check(TOLD, False, what)
                continue
            self.verdicts.check(TOLD, True, "")
            push.is_told = True
            ending = (way["state"], way["into"] or way["reason"]) if way["state"] in ENDS else None
            if push.ending not in (None, ending):
                self.wrong(push, way, f"it was reported as {push.ending} before")
                continue
            push.ending = ending
            if ending is None:
                self.ledger.open_pushes.append(push)
            if fault := self.fault(push, way):
                self.wrong(push, way, fault)
            else:
                self.verdicts.check(RIGHT, True, "")

    def wrong(self, push: Push, way: dict, fault: str) -> None:
        self.ledger.told_wrongly += not push.is_told_wrongly
        push.is_told_wrongly = True
        self.verdicts.check(RIGHT, False, f"push {push.apns_id}, answered {push.disposition}: {fault}; told: {way}")

    def fault(self, push: Push, way: dict) -> str | None:
        """Returns the contradiction in the history of a push, if any."""
        state, names = way["state"], [step["event"] for step in way["events"]]
        if names[:1] != ["received"] or names.count("received") != 1:
            return f"it was received {names.count('received')} times"
        if (state == "noWake") == push.wakes:
            return f"it is {state}, and wakes {'a' if push.wakes else 'no'} device"
        if push.disposition and way["events"][0]["detail"] not in (push.disposition, push.disposition.replace("-", "")):
            return f"it was received as {way['events'][0]['detail']}"
        if any(one["at"] > other["at"] for one, other in zip(way["events"], way["events"][1:])):
            return "its times run backwards"
        return ends_fault(way) or wakes_fault(push.launches, way) or self.place_fault(push, way)

    def place_fault(self, push: Push, way: dict) -> str | None:
        """Returns the contradiction between a history and its device, or the push it was coalesced into."""
        state, device = way["state"], push.device
        if state in ("pending", "inFlight"):
            held = self.explained[device.index].get(state)
            if not held or held["apnsID"] != push.apns_id:
                return f"it waits, and the device holds {held and held['apnsID']}"
        elif state == "coalesced":
            number, _, sequence = way["into"].partition("-0000-4000-8000-")
            if not sequence or int(number, 16) != device.index or int(sequence, 16) == push.sequence:
                return f"it was coalesced into {way['into']}"
            if int(sequence, 16) not in device.pushes:
                return f"it was coalesced into {way['into']}, which was never sent"
        elif state == "discarded" and device.topic == KEPT:
            return "nothing discards pushes of this topic"
        return None

    def balance(self, before: dict[str, collections.Counter], after: dict[str, collections.Counter]) -> None:
        """Compares the reported ends of all pushes with the totals before and after, because a push may expire in
        between."""
        told = {topic: collections.Counter() for topic in TOPICS}
        for push in self.ledger.ended_pushes:
            if push.wakes:
                state, detail = push.ending
                told[push.device.topic][state, detail if state == "discarded" else None] += 1
        for push in self.ledger.open_pushes:
            told[push.device.topic]["waiting", None] += 1
        for topic in TOPICS:
            for key in sorted(told[topic].keys() | after[topic].keys(), key=str):
                counts = sorted([before[topic][key], after[topic][key]])
                what = f"ways of {topic} that are reported as {' '.join(filter(None, key))}"
                self.verdicts.within(BALANCED, what, told[topic][key], *counts)

    async def lists(self) -> None:
        """Checks the last pushes of each device: newest first, complete, and each with the data of its own history."""
        devices = [device for device in self.ledger.devices if device.registered == [True]]
        answers = await self.answers([f"/v1/devices/{device.token}/pushes" for device in devices])
        for device, (status, answer) in zip(devices, answers, strict=True):
            pushes = {int(push["apnsID"].rpartition("-")[2], 16): push for push in answer.get("pushes", [])}
            what = f"list of device {device.index}"
            if not self.verdicts.equal(LISTED, f"answer to the {what}", status, 200):
                continue
            told = [number for number, push in device.pushes.items() if push.is_told]
            expected = sorted(told, reverse=True)[: len(pushes)]
            is_empty = bool(told) and not pushes
            self.verdicts.check(LISTED, not is_empty, f"the {what} is empty")
            self.verdicts.equal(LISTED, what, list(pushes), expected)
            for number, listed in pushes.items():
                push = device.pushes.get(number)
                if push and push.ending:
                    ending = (listed["state"], listed["into"] or listed["reason"])
                    self.verdicts.equal(LISTED, f"{push.apns_id} in the {what}", ending, push.ending)


def ends_fault(way: dict) -> str | None:
    """Returns the reason why the steps of a history do not lead to its one end."""
    state, steps = way["state"], way["events"]
    runs = [step for step in steps if step["event"] in ("launched", "result")]
    for place, step in enumerate(runs):
        if step["event"] != ("result" if place % 2 else "launched"):
            return "launches and results do not take turns"
    is_running = len(runs) % 2 == 1
    if is_running != (state == "inFlight"):
        return f"it is {state}, and its last launch has {'no' if is_running else 'its'} result"
    ends = [step["event"] for step in steps if step["event"] in ("coalesced", "discarded")]
    ends += ["completed" for step in runs if step["detail"] in ("newData", "noData")]
    if len(steps) == 1 and steps[0]["detail"] in ("noWake", "no-wake"):
        ends.append("noWake")
    if ends != [state] * (state in ENDS):
        return f"it is {state}, and its steps end as {ends}"
    return None


def wakes_fault(wakes: list[Wake], way: dict) -> str | None:
    """Returns the difference between the wakes that workers saw and those in the history."""
    launches = collections.Counter(step["detail"] for step in way["events"] if step["event"] == "launched")
    results = collections.Counter(step["detail"] for step in way["events"] if step["event"] == "result")
    seen = collections.Counter(f"attempt {wake.attempt}, coalesced {wake.coalesced}" for wake in wakes)
    if seen - launches:
        return f"workers had {dict(seen - launches)}, too"
    outcomes = collections.Counter(wake.outcome for wake in wakes if wake.outcome not in (None, "forgotten"))
    if outcomes - results:
        return f"workers got {dict(outcomes - results)}, too"
    # Only workers send results, and the ledger contains every answered result. The other ends have no worker.
    unheard = {name: count for name, count in (results - outcomes).items() if name in RESULTS}
    if unheard and all(wake.outcome not in (None, "forgotten") for wake in wakes):
        return f"no worker sent {unheard}"
    return None
