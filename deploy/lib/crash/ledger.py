"""The clients' knowledge of the gateway: each push, wake and change with its answer, and those without an answer."""

import functools
import random
from dataclasses import dataclass, field

# Every push of a kept device ends as completed, so its counters are compared push by push. Pushes of mixed devices also
# end in all other ways, and are compared by totals.
KEPT, MIXED = "com.example.kept", "com.example.mixed"
TOPICS = (KEPT, MIXED)

RESULTS = ("newData", "noData", "failed")
OUTCOMES = (*RESULTS, "expired", "lost")

POLICY = {
    "launchInterval": 1, "dailyLaunches": 100_000, "immediateRefill": 2, "executionWindow": 3, "maxAttempts": 100_000,
    "maxPenalty": 1, "maxInterval": 2,
}  # fmt: skip
MIXED_POLICY = {"maxAttempts": 2}

DEFAULT_CONDITIONS = {
    "appState": "background", "backgroundRefresh": "available", "batteryLevel": 1, "charging": False,
    "lowPowerMode": False, "thermalState": "nominal", "memoryPressure": "normal",
    "network": True,
}  # fmt: skip


@dataclass
class Wake:
    id: str
    device: "Device"
    # The sequence number of its push; 0 for an empty wake.
    sequence: int
    coalesced: int
    attempt: int
    launched_at: int
    # How it ended, after a worker has been informed.
    outcome: str | None = None
    # The result that was sent, answered or not.
    posted: str | None = None
    # The ledger's `leaves` when the wake arrived, and whether its worker was leaving the stream then.
    leaves: int = 0
    is_left: bool = False


@dataclass(slots=True)
class Push:
    """A push that was sent, and its history in the delivery log."""

    device: "Device"
    sequence: int
    wakes: bool
    # The disposition in its answer; None if it was not answered.
    disposition: str | None = None
    launches: list[Wake] = field(default_factory=list)
    # How it ended, according to the log: a state, with the push that replaced it or the reason. It never changes.
    ending: tuple[str, str | None] | None = None
    # True if the log knows it; None until the log was queried after the push was answered or lost its answer.
    is_told: bool | None = None
    # True if the log has ever reported something impossible about it.
    is_told_wrongly: bool = False

    @property
    def apns_id(self) -> str:
        return self.device.apns_id(self.sequence)


@dataclass
class Device:
    index: int
    topic: str
    token: str
    # Used by one task at a time, so that its pushes have an order.
    is_busy: bool = False
    # Sequence numbers of pushes: the last one sent, and the last one that is known to be accepted.
    sent: int = 0
    acknowledged: int = 0
    # The number of pushes that were certainly accepted, and of further ones that may have been accepted.
    accepted: int = 0
    perhaps: int = 0
    wakes: list[Wake] = field(default_factory=list)
    # By sequence number.
    pushes: dict[int, Push] = field(default_factory=dict)
    # Its possible states: registered or not, and its conditions. There is one of each, unless an answer was lost.
    registered: list[bool] = field(default_factory=lambda: [False])
    conditions: list[dict] = field(default_factory=lambda: [dict(DEFAULT_CONDITIONS)])

    def apns_id(self, sequence: int) -> str:
        return f"{self.index:08x}-0000-4000-8000-{sequence:012x}"

    def payload(self, sequence: int, wakes: bool = True) -> dict:
        """Returns the payload of a push; its size depends on the sequence, so that it can be compared when it comes
        back."""
        source = random.Random(self.index * 1_000_003 + sequence)
        filler = "%x" % source.getrandbits(4 * int(2 ** source.uniform(4, 11.8)))
        return {"aps": {"content-available": 1} if wakes else {}, "sequence": sequence, "filler": filler}

    @property
    def ended(self) -> list[Wake]:
        """Returns the wakes that counted, in order, without lost wakes."""
        return [wake for wake in self.wakes if wake.outcome not in (None, "lost", "forgotten")]

    @property
    def completed(self) -> list[Wake]:
        return [wake for wake in self.wakes if wake.outcome in ("newData", "noData")]


class Ledger:
    def __init__(self, kept: int, mixed: int):
        topics = [KEPT] * kept + [MIXED] * mixed
        source = random.Random(5)
        self.devices = [Device(index, topic, "%064x" % source.getrandbits(256)) for index, topic in enumerate(topics)]
        self.by_token = {device.token: device for device in self.devices}
        self.wakes: dict[str, Wake] = {}
        # For each topic: pushes that were certainly accepted, and further ones that may have been.
        self.accepted = dict.fromkeys(TOPICS, 0)
        self.perhaps = dict.fromkeys(TOPICS, 0)
        # The same for pushes that do not cause a wake.
        self.no_wake = self.no_wake_perhaps = 0
        # The highest value in any answer, by the path of the counter.
        self.highest: dict[tuple[str, ...], int] = {}
        # The total numbers of pushes with the answer 200, and of pushes without an answer.
        self.answered = self.unanswered = 0
        self.results_answered = self.changes_answered = 0
        # Raised when a worker begins to leave its stream while the gateway runs, and when the gateway has noticed it.
        self.leaves = 0
        # The pushes to look up in the delivery log at the next comparison: new ones, and waiting ones.
        self.open_pushes: list[Push] = []
        # All pushes whose end the log has reported, and their number for each topic and ending.
        self.ended_pushes: list[Push] = []
        # The numbers of acknowledged pushes that were missing in the counters, missing in the log, or impossible in the
        # log.
        self.missing = self.untold = self.told_wrongly = 0

    def of(self, topic: str) -> list[Device]:
        return [device for device in self.devices if device.topic == topic]

    def take_wake(self, data: dict) -> Wake:
        device = self.by_token[data["device"]]
        sequence = int(data["apnsID"].rpartition("-")[2], 16) if data["apnsID"] else 0
        launched_at = data["deadline"] - POLICY["executionWindow"] * 1000
        wake = Wake(data["wake"], device, sequence, data["coalesced"], data["attempt"], launched_at)
        wake.leaves = self.leaves
        device.wakes.append(wake)
        if sequence in device.pushes:
            device.pushes[sequence].launches.append(wake)
        self.wakes[wake.id] = wake
        return wake

    def outcomes(self) -> dict[str, int]:
        # A wake is forgotten if the gateway no longer knows its end and has never reported it.
        counts = dict.fromkeys((*OUTCOMES, "forgotten"), 0)
        for wake in self.wakes.values():
            if wake.outcome:
                counts[wake.outcome] += 1
        return counts


DISCARDS = ("expired", "exhausted", "forceQuit", "unregistered", "cancelled")
COUNTERS = [
    ("pushes", "accepted"), ("pushes", "completed"), ("pushes", "coalesced"),
    *(("pushes", "discarded", reason) for reason in DISCARDS),
    ("wakes", "launched"), *(("wakes", "results", outcome) for outcome in OUTCOMES),
]  # fmt: skip

NO_STATISTICS = {
    "pushes": {
        **dict.fromkeys(("accepted", "completed", "coalesced", "pending", "inFlight", "noWake"), 0),
        "discarded": dict.fromkeys(("expired", "exhausted", "forceQuit", "unregistered"), 0),
    },
    "wakes": {"launched": 0, "results": dict.fromkeys(OUTCOMES, 0)},
}  # fmt: skip


def counters(stats: dict) -> dict[tuple[str, ...], int]:
    """Returns the counters that never decrease."""
    return {path: functools.reduce(dict.__getitem__, path, stats) for path in COUNTERS}


def imbalance(stats: dict) -> str | None:
    """Returns the imbalance in one answer of the statistics, or None."""
    pushes = stats["pushes"]
    discarded = sum(pushes["discarded"].values())
    ended = pushes["completed"] + pushes["coalesced"] + discarded + pushes["pending"] + pushes["inFlight"]
    if pushes["accepted"] != ended:
        return f"accepted {pushes['accepted']} is not {ended}: {pushes}"
    return None
