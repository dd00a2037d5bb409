"""What each device of a fleet lives through, by a seed: its uses, its charger, its network, the pushes it gets."""

import json
import random
from dataclasses import dataclass, field

HOUR = 3600
DAY = 24 * HOUR
# A week of use, from which habits are known; the day that is looked at comes after it.
BEGIN = 7 * DAY
END = 8 * DAY
# From here on there are pushes and requests, so that the day begins in full swing.
EVE = BEGIN - 6 * HOUR

# How likely a push is in each hour of the day.
PUSHES_BY_HOUR = [1, 1, 1, 1, 1, 2, 4, 6, 8, 8, 8, 8, 9, 8, 8, 8, 8, 9, 9, 9, 8, 6, 4, 2]
# How many devices in a hundred get how many pushes a day.
PUSHES_A_DAY = [(60, 4), (35, 24), (5, 400)]


@dataclass(frozen=True)
class Span:
    begin: int
    end: int

    def __contains__(self, moment: float) -> bool:
        return self.begin <= moment <= self.end


@dataclass(frozen=True)
class Push:
    moment: int
    priority: int


@dataclass
class Device:
    name: str
    # How long after a refresh the next one is asked for.
    refresh_gap: int
    # When the first refresh and the first processing are asked for.
    first_requests: tuple[int, int]
    uses: list[Span] = field(default_factory=list)
    charged: list[Span] = field(default_factory=list)
    offline: list[Span] = field(default_factory=list)
    pushes: list[Push] = field(default_factory=list)
    # The trace's events but for requests: the moment, and what stands beside "t" and "device".
    events: list[tuple[int, dict]] = field(default_factory=list)


def fleet(count: int, seed: int) -> list[Device]:
    return [device(number, seed) for number in range(count)]


def device(number: int, seed: int) -> Device:
    """Every device has random numbers of its own: it lives the same life in a fleet of any size."""
    chance = random.Random(f"{seed}/{number}").random

    def between(low: float, high: float) -> int:
        return int(low + chance() * (high - low))

    made = Device(
        name=f"d{number}",
        refresh_gap=(2, 3, 4, 6)[between(0, 4)] * HOUR,
        first_requests=(EVE + between(0, 2 * HOUR), EVE + between(0, HOUR)),
    )
    habits = sorted({between(6, 10), between(11, 15), between(16, 24)})
    begins = [day * DAY + hour * HOUR + between(0, HOUR) for day in range(8) for hour in habits if chance() < 0.85]
    begins += [day * DAY + between(7 * HOUR, DAY) for day in range(8) if chance() < 0.7]
    made.uses = apart([Span(begin, begin + between(60, 900)) for begin in sorted(begins)])
    evenings = [BEGIN - DAY, BEGIN]
    made.charged = [
        Span(day + between(21.5 * HOUR, 23.8 * HOUR), day + DAY + between(6 * HOUR, 7.5 * HOUR)) for day in evenings
    ]
    if chance() < 0.1:
        begin = BEGIN + between(8 * HOUR, 20 * HOUR)
        made.offline = [Span(begin, begin + between(1800, 5400))]
    made.pushes = pushes(chance)
    for use in made.uses:
        report(made, use, {"appState": "active"}, {"appState": "background"})
    for span in made.charged:
        report(made, span, {"charging": True}, {"charging": False, "batteryLevel": 1})
        made.events.append((span.begin - 3 * HOUR, {"conditions": {"batteryLevel": round(0.1 + chance() * 0.6, 2)}}))
    for span in made.offline:
        report(made, span, {"network": False}, {"network": True})
    for order, push in enumerate(made.pushes):
        event = {"apnsID": f"{made.name}-{order}", "priority": push.priority}
        made.events.append((push.moment, {"push": event}))
    made.events.sort(key=lambda event: event[0])
    return made


def apart(spans: list[Span]) -> list[Span]:
    """Those that begin at least a minute after the one before ended."""
    kept: list[Span] = []
    for span in spans:
        if not kept or span.begin >= kept[-1].end + 60:
            kept.append(span)
    return kept


def pushes(chance) -> list[Push]:
    kind = chance() * 100
    a_day = 0
    for share, count in PUSHES_A_DAY:
        if kind < share:
            a_day = count
            break
        kind -= share
    made = []
    for hour in range(EVE // HOUR, END // HOUR):
        expected = a_day * PUSHES_BY_HOUR[hour % 24] / sum(PUSHES_BY_HOUR)
        count = int(expected) + (chance() < expected % 1)
        moments = sorted(hour * HOUR + int(chance() * HOUR) for _ in range(count))
        made += [Push(moment, 10 if chance() < 0.1 else 5) for moment in moments]
    return made


def report(device: Device, span: Span, begins: dict, ends: dict) -> None:
    device.events.append((span.begin, {"conditions": begins}))
    device.events.append((span.end, {"conditions": ends}))


def line(moment: float, device: Device, event: dict) -> str:
    return json.dumps({"t": moment, "device": device.name, **event}, separators=(",", ":"))
