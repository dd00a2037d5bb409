"""What the world outside knows of the gateway: each push, wake and change it was told of, and each it was not."""

import functools
import random
from dataclasses import dataclass, field

# Every push of a kept device ends as completed: its books are compared push by push. Pushes of mixed devices end in
# every other way, too, and are compared by the totals.
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
    # Of the push it carries; 0 for an empty one.
    sequence: int
    coalesced: int
    attempt: int
    launched_at: int
    # How it ended, once a worker was told.
    outcome: str | None = None
    # The result that was sent, whether it was answered or not.
    posted: str | None = None
    # The ledger's `leaves` when it came, and whether its worker was leaving the stream by then.
    leaves: int = 0
    is_left: bool = False


@dataclass(slots=True)
class Push:
    """One push that was sent, and what the delivery log told of it."""

    device: "Device"
    sequence: int
    wakes: bool
    # The disposition it was answered with; none when it was left without an answer.
    disposition: str | None = None
    launches: list[Wake] = field(default_factory=list)
    # How it ended, once the log told that: a state, with the push it went into or the reason. For good.
    ending: tuple[str, str | None] | None = None
    # Whether the log knows it; none until it was asked after the push had been answered or left.
    is_told: bool | None = None
    # Whether something was told of it that cannot be, at whatever time.
    is_told_wrongly: bool = False

    @property
    def apns_id(self) -> str:
        return self.device.apns_id(self.sequence)


@dataclass
class Device:
    index: int
    topic: str
    token: str
    # In use by one task at a time, so that its pushes have an order.
    is_busy: bool = False
    # Sequence numbers of pushes: the last sent, and the last known to be accepted.
    sent: int = 0
    acknowledged: int = 0
    # How many pushes were accepted for certain, and how many perhaps, besides.
    accepted: int = 0
    perhaps: int = 0
    wakes: list[Wake] = field(default_factory=list)
    # By sequence number.
    pushes: dict[int, Push] = field(default_factory=dict)
    # The states it may be in: whether registered, and its conditions. One of each, unless an answer was lost.
    registered: list[bool] = field(default_factory=lambda: [False])
    conditions: list[dict] = field(default_factory=lambda: [dict(DEFAULT_CONDITIONS)])

    def apns_id(self, sequence: int) -> str:
        return f"{self.index:08x}-0000-4000-8000-{sequence:012x}"

    def payload(self, sequence: int, wakes: bool = True) -> dict:
        """The payload of a push; its size is drawn by the sequence, so that it can be compared when it comes back."""
        source = random.Random(self.index * 1_000_003 + sequence)
        filler = "%x" % source.getrandbits(4 * int(2 ** source.uniform(4, 11.8)))
        return {"aps": {"content-available": 1} if wakes else {}, "sequence": sequence, "filler": filler}

    @property
    def ended(self) -> list[Wake]:
        """The wakes that counted, in order: a lost one never happened."""
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
        # Of each topic: pushes accepted for certain, and perhaps.
        self.accepted = dict.fromkeys(TOPICS, 0)
        self.perhaps = dict.fromkeys(TOPICS, 0)
        # The same of pushes without a wake.
        self.no_wake = self.no_wake_perhaps = 0
        # The highest value that any answer ever showed, by the counter's path.
        self.highest: dict[tuple[str, ...], int] = {}
        # All that was ever answered 200, and ever left without an answer.
        self.answered = self.unanswered = 0
        self.results_answered = self.changes_answered = 0
        # Raised when a worker begins to leave its stream, the gateway running on, and when the gateway has noticed.
        self.leaves = 0
        # Pushes that the delivery log is asked for at the next comparison: new ones, and those that waited.
        self.open_pushes: list[Push] = []
        # All pushes whose end it told, and how many of them ended how, by topic and ending.
        self.ended_pushes: list[Push] = []
        # How many acknowledged pushes the books lacked, and the log knew nothing of, or told what cannot be.
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

    def outcomes(self, topic: str | None = None) -> dict[str, int]:
        # Forgotten are those of which the gateway remembers no end, and never told any.
        counts = dict.fromkeys((*OUTCOMES, "forgotten"), 0)
        for wake in self.wakes.values():
            if wake.outcome and topic in (None, wake.device.topic):
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
    """Everything that never falls."""
    return {path: functools.reduce(dict.__getitem__, path, stats) for path in COUNTERS}


def imbalance(stats: dict) -> str | None:
    """What does not balance in one answer of the statistics, or nothing."""
    pushes = stats["pushes"]
    discarded = sum(pushes["discarded"].values())
    ended = pushes["completed"] + pushes["coalesced"] + discarded + pushes["pending"] + pushes["inFlight"]
    if pushes["accepted"] != ended:
        return f"accepted {pushes['accepted']} is not {ended}: {pushes}"
    return None
