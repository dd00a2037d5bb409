"""The checks after a restart, before any client works again: every promise in the ledger is compared."""

import json

from clients import http1
from clients.h2_client import Client
from crash.ledger import KEPT, NO_STATISTICS, POLICY, RESULTS, TOPICS, Device, Ledger, imbalance
from crash.load import REMEMBERED, Load
from crash.ways import Ways
from shared.verdicts import Verdicts

TOLERANCE_MS = 50


class Audit:
    """A check of a gateway that has just started and has no other clients."""

    def __init__(self, load: Load, is_restart: bool, ways_again_max: int | None):
        """`ways_again_max` limits the number of pushes with a known end that are read again; None for no limit."""
        self.load, self.is_restart, self.ways_again_max = load, is_restart, ways_again_max
        self.ledger: Ledger = load.ledger
        self.verdicts: Verdicts = load.verdicts
        self.edge: Client

    async def run(self) -> None:
        self.edge = await self.load.edge()
        await self.resolve_wakes()
        paths = [f"/v1/devices/{device.token}" for device in self.ledger.devices]
        answers = await http1.read_all(self.load.gateway.admin, paths)
        explained = [answer if status == 200 else {} for status, answer in answers]
        stats = await self.statistics("/v1/stats")
        self.load.take_statistics(stats)
        self.totals(stats)
        for topic in TOPICS:
            self.topic_totals(topic, await self.statistics(f"/v1/stats/topics/{topic}"))
        for device in self.ledger.devices:
            self.device(device, explained[device.index])
        kept = await self.statistics(f"/v1/stats/topics/{KEPT}")
        self.kept_totals(kept, [explained[device.index] for device in self.ledger.of(KEPT)])
        await self.removed()
        await Ways(self.load, explained, self.ways_again_max).run()
        await self.edge.close()

    async def statistics(self, path: str) -> dict:
        """Returns the totals; zeros if the gateway does not know the topic, which the comparisons then detect."""
        [(status, stats)] = await http1.read_all(self.load.gateway.admin, [path])
        return stats if status == 200 else NO_STATISTICS

    # Wakes

    async def resolve_wakes(self) -> None:
        """Determines the end of each wake whose worker got no answer, by sending its result again."""
        open_wakes = [wake for wake in self.ledger.wakes.values() if wake.outcome is None]
        name = "wakes in flight at the end are lost, unless their result was in time"
        for wake in open_wakes:
            had_been_posted = wake.posted is not None
            await self.load.report(self.edge, wake, wake.posted or "newData")
            if self.is_restart and not had_been_posted:
                what = f"outcome of wake {wake.id} of device {wake.device.index}, never answered,"
                self.verdicts.check(name, wake.outcome in ("lost", "expired", "forgotten"), f"{what} is {wake.outcome}")
            else:
                self.verdicts.check(name, wake.outcome is not None, f"wake {wake.id} has no outcome")
        # An answered result is remembered: the same result gets the same answer again.
        name = "results that were answered 204 are answered 204 again"
        answered = [wake for wake in self.ledger.wakes.values() if wake.posted and wake.outcome == wake.posted]
        for wake in answered[-8:]:
            if wake not in wake.device.wakes[-REMEMBERED:] or wake in open_wakes:
                continue
            body = json.dumps({"result": wake.posted}).encode()
            response = await self.edge.request("POST", f"/v1/wakes/{wake.id}", body)
            self.verdicts.equal(name, f"answer of wake {wake.id}", response.status, 204)

    # Totals

    def totals(self, stats: dict) -> None:
        ledger, verdicts = self.ledger, self.verdicts
        outcomes = ledger.outcomes()
        results = stats["wakes"]["results"]
        for outcome in (*RESULTS, "expired"):
            name = "every result that was answered is counted, each once"
            known = outcomes[outcome]
            verdicts.within(name, f"wakes.results.{outcome}", results[outcome], known, known + outcomes["forgotten"])
        seen = outcomes["lost"]
        name = "every wake lost is counted"
        verdicts.check(name, results["lost"] >= seen, f"wakes.results.lost is {results['lost']}, {seen} were seen")
        if self.is_restart:
            name = "nothing is in flight after a restart, and every launch has its result"
            verdicts.equal(name, "pushes.inFlight", stats["pushes"]["inFlight"], 0)
            verdicts.equal(name, "wakes.launched", stats["wakes"]["launched"], sum(results.values()))

    def topic_totals(self, topic: str, stats: dict) -> None:
        """Checks that all pushes answered 200 were accepted, and none of the unanswered pushes twice."""
        ledger, accepted = self.ledger, stats["pushes"]["accepted"]
        least, most = ledger.accepted[topic], ledger.accepted[topic] + ledger.perhaps[topic]
        name = "every push that was answered 200 is counted, and no other twice"
        self.verdicts.within(name, f"accepted of {topic}", accepted, least, most)
        ledger.missing += max(0, least - accepted)
        fault = imbalance(stats)
        self.verdicts.check("the counters balance in every answer", fault is None, fault or "")
        # From here on, the state of unanswered pushes is known, so the next comparison is as strict as the first.
        ledger.accepted[topic], ledger.perhaps[topic] = accepted, 0

    def kept_totals(self, stats: dict, explained: list[dict]) -> None:
        """Checks that the totals of the kept topic are the sums over its devices."""
        devices = self.ledger.of(KEPT)
        completed = [wake for device in devices for wake in device.completed]
        waiting = [answer[key] for answer in explained for key in ("pending", "inFlight") if answer.get(key)]
        pushes = stats["pushes"]
        name = "the totals are the sum of the devices"
        self.verdicts.equal(name, "accepted", pushes["accepted"], sum(device.accepted for device in devices))
        self.verdicts.equal(name, "completed", pushes["completed"], len(completed))
        coalesced = sum(wake.coalesced for wake in completed) + sum(push["coalesced"] for push in waiting)
        self.verdicts.equal(name, "coalesced", pushes["coalesced"], coalesced)
        self.verdicts.equal(name, "waiting", pushes["pending"] + pushes["inFlight"], len(waiting))
        self.verdicts.equal(name, "discarded", sum(pushes["discarded"].values()), 0)

    # Devices

    def device(self, device: Device, answer: dict) -> None:
        is_registered = answer.get("registeredAt") is not None
        name = "registrations, removals and conditions that were answered are there"
        what = f"whether device {device.index} is registered"
        self.verdicts.check(name, is_registered in device.registered, f"{what} is {is_registered}")
        device.registered = [is_registered]
        if not is_registered:
            return
        conditions = answer["conditions"]
        what = f"conditions of device {device.index} are {conditions}, not of {device.conditions}"
        self.verdicts.check(name, conditions in device.conditions, what)
        device.conditions = [conditions]
        if device.topic == KEPT:
            self.kept_device(device, answer)

    def kept_device(self, device: Device, answer: dict) -> None:
        verdicts, number = self.verdicts, device.index
        waiting = [answer[key] for key in ("pending", "inFlight") if answer[key]]
        known = sum(wake.coalesced + 1 for wake in device.completed) + sum(push["coalesced"] + 1 for push in waiting)
        name = "each device's pushes are all there: completed, pending or in flight"
        most = device.accepted + device.perhaps
        verdicts.within(name, f"pushes of device {number}", known, device.accepted, most)
        device.accepted, device.perhaps = known, 0
        newest = max(
            [wake.sequence for wake in device.completed]
            + [int(push["apnsID"].rpartition("-")[2], 16) for push in waiting],
            default=0,
        )
        name = "the last push a device's provider was answered is not behind"
        verdicts.within(name, f"newest push of device {number}", newest, device.acknowledged, device.sent)
        self.budgets(device, answer)

    def budgets(self, device: Device, answer: dict) -> None:
        """Checks launches in the window, penalty and last launch against the wakes that counted."""
        name = "budgets, penalties and last launches are unchanged"
        if answer["inFlight"]:
            return
        ended, penalty = device.ended, 0
        for wake in ended:
            if wake.outcome == "expired":
                penalty = min(penalty + 1, POLICY["maxPenalty"])
            elif wake.outcome == "newData":
                penalty = 0
        what = f"of device {device.index}"
        self.verdicts.equal(name, f"launchesInWindow {what}", answer["launchesInWindow"], len(ended))
        self.verdicts.equal(name, f"penalty {what}", answer["penalty"], penalty)
        last = ended[-1].launched_at if ended else None
        found = answer["lastLaunchAt"]
        agrees = found == last or (found and last and abs(found - last) <= TOLERANCE_MS)
        self.verdicts.check(name, bool(agrees), f"lastLaunchAt {what} is {found}, not {last}")

    async def removed(self) -> None:
        """Checks that a push to a removed device is answered 410, with the time of its removal."""
        name = "pushes to removed devices are answered 410 after the restart"
        removed = [device for device in self.ledger.devices if device.registered == [False] and device.sent]
        for device in removed[:20]:
            head = [("apns-topic", device.topic), ("wakegate-dry-run", "1")]
            body = json.dumps(device.payload(0)).encode()
            response = await self.edge.request("POST", f"/3/device/{device.token}", body, head)
            answer = json.loads(response.body or b"{}")
            found = (response.status, answer.get("reason"), answer.get("timestamp", 0) > 0)
            self.verdicts.equal(name, f"device {device.index}", found, (410, "Unregistered", True))
