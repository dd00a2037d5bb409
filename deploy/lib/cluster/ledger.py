"""The knowledge of a cluster's providers and workers: each push with and without an answer, and each wake."""

import random
from dataclasses import dataclass, field

TOPIC = "com.example.cluster"
# One device in this many receives only pushes that must be delivered immediately.
FLEETING_EVERY = 10
# The number of a device's last wakes with which a new one is compared.
LOOKS_BACK = 5
# The outcomes of wakes that never counted: their pushes are launched again immediately.
LOST = "lost"
RESULTS = ("newData", "noData")


@dataclass(slots=True)
class Wake:
    id: str
    # The number of pushes that it carries in addition to its own.
    coalesced: int
    attempt: int
    # From the deadline that its worker received, in wall time on the gateway's clock at that moment.
    launched_at: int
    gateway: int
    # The answer to its worker's result: the result, how it had ended before, or none while this is open.
    outcome: str | None = None


@dataclass(slots=True)
class Device:
    token: str
    # True if its pushes must be delivered immediately. They are discarded if no slot is free within moments.
    is_fleeting: bool = False
    # The number of pushes with the answer 200, and of pushes without an answer that were not sent again.
    accepted: int = 0
    perhaps: int = 0
    wakes: list[Wake] = field(default_factory=list)


class Ledger:
    def __init__(self, devices: int, source: random.Random):
        self.devices = [
            Device(f"{source.getrandbits(256):064x}", is_fleeting=number % FLEETING_EVERY == FLEETING_EVERY - 1)
            for number in range(devices)
        ]
        self.by_token = {device.token: device for device in self.devices}
        self.wakes: dict[str, Wake] = {}
        # The device of each acknowledged push, by its apns-id.
        self.acknowledged: dict[str, Device] = {}
        self.perhaps: list[str] = []
        # Answers with the apns-id of another push.
        self.twice_named: list[str] = []
        self.repeated_wakes: list[str] = []
        self.refused: dict[int, int] = {}
        # Pushes whose answer was lost or a refusal, and which got 200 when they were sent again.
        self.repaired = 0
        self.without_answer = 0
        # When each answered push was sent and answered, by the monotonic clock, and which gateway answered it.
        self.answers: list[tuple[float, float, int]] = []
        self.unexpected: list[str] = []
        # Wakes that came close to others of their device, and the deadlines in policy time that the database has of such.
        self.close: list[str] = []
        self.deadlines: dict[str, int] = {}

    @property
    def count(self) -> int:
        return len(self.acknowledged)

    def acknowledge(self, device: Device, apns_id: str, sent: float, answered: float, by: int) -> None:
        name = apns_id.lower()
        if name in self.acknowledged:
            self.twice_named.append(name)
        self.acknowledged[name] = device
        device.accepted += 1
        self.answers.append((sent, answered, by))

    def take_wake(self, data: dict, window: int, interval: int, gateway: int) -> Wake:
        launched_at = data["deadline"] - window * 1000
        wake = Wake(data["wake"], data["coalesced"], data["attempt"], launched_at, gateway)
        if (known := self.wakes.get(wake.id)) is not None:
            self.repeated_wakes.append(f"wake {wake.id} came from gateway {known.gateway} and from {gateway}")
        self.wakes[wake.id] = wake
        wakes = self.by_token[data["device"]].wakes
        near = [other.id for other in wakes[-LOOKS_BACK:] if launched_at - other.launched_at < interval * 1000]
        if near:
            self.close += [*near, wake.id]
        wakes.append(wake)
        return wake

    def apart(self, wake: Wake, following: Wake) -> int:
        """Returns the milliseconds between launches: from the database if available, otherwise from the workers'
        wakes."""
        if wake.id in self.deadlines and following.id in self.deadlines:
            return self.deadlines[following.id] - self.deadlines[wake.id]
        return following.launched_at - wake.launched_at

    def first_after(self, moment: float, by: int | None) -> float | None:
        """Returns the seconds from `moment` to the first answer 200 to a push that was sent after it."""
        # Answers are in the order in which they arrived. The requested ones are near the end.
        found = None
        for sent, answered, gateway in reversed(self.answers):
            if answered < moment:
                break
            if sent >= moment and by in (None, gateway):
                found = answered
        return None if found is None else found - moment
