"""What providers and workers of a cluster know: each push they were answered, each they were not, and each wake."""

import random
import uuid
from dataclasses import dataclass, field

TOPIC = "com.example.cluster"
# Every so many devices is one of pushes for now or never.
FLEETING_EVERY = 10
# With how many of a device's last wakes a new one is compared.
LOOKS_BACK = 5
# How a wake ended that never counted: its push is launched again at once.
LOST = "lost"
RESULTS = ("newData", "noData")


@dataclass(slots=True)
class Wake:
    id: str
    # Pushes that it carries besides its own.
    coalesced: int
    attempt: int
    # By the deadline that its worker was told: of wall time, as the gateway knows it just then.
    launched_at: int
    gateway: int
    # What its worker's result was answered: the result, how it had ended before, or none while that is open.
    outcome: str | None = None


@dataclass(slots=True)
class Device:
    token: str
    # Whether its pushes are for now or never: what finds no free slot within moments is discarded.
    is_fleeting: bool = False
    # Pushes that were answered 200, and those that were left without an answer and not sent again.
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
        # Answers with an apns-id that another push had, too.
        self.twice_named: list[str] = []
        self.repeated_wakes: list[str] = []
        self.refused: dict[int, int] = {}
        # Pushes of which an answer was lost or refused, and that were answered 200 when they were sent again.
        self.repaired = 0
        self.without_answer = 0
        # When each answered push was sent and answered, on the monotonic clock, and by which gateway.
        self.answers: list[tuple[float, float, int]] = []
        self.unexpected: list[str] = []
        # Wakes that came close to others of their device, and the deadlines in policy time that the database has of such.
        self.close: list[str] = []
        self.deadlines: dict[str, int] = {}

    @staticmethod
    def apns_id(source: random.Random) -> str:
        return str(uuid.UUID(int=source.getrandbits(128), version=4))

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
        """Milliseconds from launch to launch: by the database where it was asked, else by the workers' wakes."""
        if wake.id in self.deadlines and following.id in self.deadlines:
            return self.deadlines[following.id] - self.deadlines[wake.id]
        return following.launched_at - wake.launched_at

    def first_after(self, moment: float, by: int | None = None) -> float | None:
        """Seconds from `moment` to the first answer 200 to a push that was sent after it."""
        # Answers stand in the order in which they came; what is asked for lies near the end.
        found = None
        for sent, answered, gateway in reversed(self.answers):
            if answered < moment:
                break
            if sent >= moment and by in (None, gateway):
                found = answered
        return None if found is None else found - moment
