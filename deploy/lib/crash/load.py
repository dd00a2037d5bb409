"""Concurrent providers, workers and operators of one gateway, which record its answers in a ledger."""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable

from clients.h2_client import Client, ConnectionLost, Response
from crash.ledger import (
    DEFAULT_CONDITIONS,
    KEPT,
    MIXED,
    POLICY,
    RESULTS,
    TOPICS,
    Device,
    Ledger,
    Push,
    Wake,
    counters,
    imbalance,
)
from shared.served_gateway import ServedGateway
from shared.verdicts import Verdicts

REFUSED_PATIENCE_SECONDS = 0.02
# The number of ended wakes that the gateway remembers for each device.
REMEMBERED = 4
# The number of concurrent tasks, and of workers for each topic.
PROVIDERS, LANES, WORKERS, SLOTS = 3, 8, 2, 64


async def until_lost(tasks: Iterable[Awaitable]) -> None:
    """Waits for the ends of all tasks, and raises any error other than a lost connection."""
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception) and not isinstance(outcome, ConnectionLost):
            raise outcome


class Load:
    """Runs until the gateway ends, or `stop` is called."""

    def __init__(self, gateway: ServedGateway, ledger: Ledger, verdicts: Verdicts, source: random.Random):
        self.gateway, self.ledger, self.verdicts = gateway, ledger, verdicts
        self.source = source
        # True if workers answer every wake immediately with newData, so that everything ends.
        self.is_settling = False
        # True during a shutdown. Refusals are then allowed, and are final.
        self.is_draining = False
        # True if the disk fails. Refusals are then allowed, and refused changes may still be found at the next start.
        self.is_failing = False
        self.clients: list[Client] = []
        self.background: set[asyncio.Task] = set()
        self.on_event: Callable[[str], None] = lambda kind: None
        # When each value of the noWake counter was seen, the newest last.
        self.no_wake_seen: list[tuple[float, int]] = []
        # True if the disk cannot be read any more either.
        self.is_disk_gone = False
        self.unanswered_polls = 0
        # Held while a worker leaves, and while a wake is ended from outside. A wake must not expire on a stream after
        # its worker has read for the last time.
        self.leaving = asyncio.Lock()
        self.is_stopped = False

    async def run(self) -> None:
        tasks: list[Coroutine] = [self.poll_statistics()]
        for topic in TOPICS:
            tasks += [self.work(topic, number) for number in range(WORKERS)]
        if not self.is_settling:
            tasks += [self.provide() for _ in range(PROVIDERS)]
            tasks.append(self.administer())
        await until_lost(tasks)
        await until_lost(self.background)

    async def stop(self) -> None:
        """Ends every connection."""
        self.is_stopped = True
        async with self.leaving:
            self.ledger.leaves += 1
            for client in list(self.clients):
                await client.ping()
                await client.close()
            self.ledger.leaves += 1

    async def connect(self, address: str, ca: str | None) -> Client:
        client = await Client.connect(address, ca)
        if self.is_stopped:
            await client.close()
            raise ConnectionLost
        self.clients.append(client)
        return client

    async def edge(self) -> Client:
        return await self.connect(self.gateway.edge, self.gateway.ca)

    # Providers

    async def provide(self) -> None:
        """Runs one connection with several concurrent pushes, each to a different device."""
        client = await self.edge()
        await until_lost(self.on_each(client, self.push) for _ in range(LANES))

    async def on_each(
        self, client: Client, act: Callable[[Client, Device], Coroutine], rest_seconds: float = 0
    ) -> None:
        """Calls a function for one device after another, while no other task works on that device."""
        while not client.is_lost:
            device = self.source.choice(self.ledger.devices)
            if device.is_busy:
                await asyncio.sleep(0)
                continue
            device.is_busy = True
            try:
                await act(client, device)
            finally:
                device.is_busy = False
            if rest_seconds:
                await asyncio.sleep(self.source.random() * rest_seconds)

    def headers(self, device: Device, sequence: int) -> list[tuple[str, str]]:
        """Returns the headers of a push; for a mixed device, random ones of every kind."""
        headers = [("apns-topic", device.topic), ("apns-id", device.apns_id(sequence))]
        headers.append(("apns-push-type", "background"))
        if device.topic == KEPT:
            return [*headers, ("apns-priority", "5")]
        headers.append(("apns-priority", self.source.choice(["1", "5", "5", "10"])))
        now = int(time.time())
        expiration = self.source.choice([None, None, 0, now + 1, now + 2, now + 3600])
        return headers if expiration is None else [*headers, ("apns-expiration", str(expiration))]

    def begin_push(self, device: Device, wakes: bool = True) -> Push:
        """Records a push that is about to be sent, because its wake may arrive before its answer."""
        device.sent += 1
        push = device.pushes[device.sent] = Push(device, device.sent, wakes)
        return push

    async def push(self, client: Client, device: Device) -> None:
        ledger, topic = self.ledger, device.topic
        wakes = topic == KEPT or self.source.random() < 0.9
        push = self.begin_push(device, wakes)
        body = json.dumps(device.payload(push.sequence, wakes)).encode()
        head = self.headers(device, push.sequence)
        try:
            response = await client.request("POST", f"/3/device/{device.token}", body, head)
        except ConnectionLost:
            self.leave_open(push)
            raise
        if await self.is_refused(response):
            if self.is_failing:
                self.leave_open(push)
            return
        if not self.is_expected(device, response):
            return
        ledger.answered += 1
        push.disposition = response.headers.get("wakegate-disposition", "")
        ledger.open_pushes.append(push)
        if wakes:
            device.acknowledged = push.sequence
            device.accepted += 1
            ledger.accepted[topic] += 1
        else:
            ledger.no_wake += 1
        self.on_event("push")

    def leave_open(self, push: Push) -> None:
        """Records a push that may or may not have been accepted."""
        self.ledger.unanswered += 1
        self.ledger.open_pushes.append(push)
        if push.wakes:
            push.device.perhaps += 1
            self.ledger.perhaps[push.device.topic] += 1
        else:
            self.ledger.no_wake_perhaps += 1

    async def is_refused(self, response: Response) -> bool:
        """Returns true if the answer is an expected 503; then waits a little, as clients do."""
        if response.status != 503 or not (self.is_draining or self.is_failing):
            return False
        if self.is_failing:
            name = "while the disk fails requests are answered 503 ServiceUnavailable"
            self.verdicts.equal(name, "reason", json.loads(response.body or b"{}").get("reason"), "ServiceUnavailable")
        self.on_event("refusal")
        await asyncio.sleep(REFUSED_PATIENCE_SECONDS)
        return True

    def is_expected(self, device: Device, response: Response) -> bool:
        """Returns true if the push was accepted; one to an unregistered device must be refused for that reason."""
        name = "pushes are answered as the device's registration says"
        what = f"push to device {device.index}"
        if device.registered == [True]:
            self.verdicts.equal(name, what, (response.status, response.body), (200, b""))
            self.verdicts.equal(name, what, response.headers.get("apns-id"), device.apns_id(device.sent))
        elif device.registered == [False]:
            reason = json.loads(response.body or b"{}").get("reason")
            self.verdicts.check(
                name, (response.status, reason) in ((410, "Unregistered"), (400, "BadDeviceToken")),
                f"{what}, which is not registered, was answered {response.status} {reason}",
            )  # fmt: skip
        return response.status == 200

    # Workers

    async def work(self, topic: str, number: int) -> None:
        """Runs one stream, which is opened again from time to time; its wakes are answered at random."""
        client = await self.edge()
        while not client.is_lost:
            stream = await self.edge()
            path = f"/v1/topics/{topic}/wakes?slots={SLOTS}&name=worker{number}"
            held: list[Wake] = []
            wakes_left = self.source.randint(50, 400)
            leaving: asyncio.Task[bool] | None = None
            async for name, data in stream.events(path):
                if name == "refused":
                    refused = await self.is_refused(data["response"])
                    self.verdicts.check("subscriptions are taken", refused, f"answered {data['response']}")
                elif name == "wake":
                    wake = self.take_wake(data)
                    wake.is_left = leaving is not None
                    held.append(wake)
                    self.spawn(self.answer(client, wake))
                    wakes_left -= 1
                elif name == "expired":
                    self.ledger.wakes[data["wake"]].outcome = "expired"
                if wakes_left <= 0 and not self.is_settling and leaving is None:
                    leaving = asyncio.create_task(self.leave(stream))
            is_ours = await leaving if leaving else False
            await stream.close()
            for wake in held:
                if is_ours and wake.outcome is None and wake.posted is None:
                    # It ended together with the stream. Ask how while the gateway still remembers it.
                    self.spawn(self.report(client, wake, "newData"))

    async def leave(self, stream: Client) -> bool:
        """Closes a worker's stream without missing an event, and waits until the gateway has noticed; returns false
        if the gateway closed it before."""
        async with self.leaving:
            self.ledger.leaves += 1
            await stream.ping()
            is_ours = not stream.is_lost
            await stream.leave()
            self.ledger.leaves += 1
            return is_ours

    def spawn(self, task: Coroutine) -> None:
        async def run() -> None:
            with contextlib.suppress(ConnectionLost):
                await task

        self.background.add(asyncio.create_task(run()))

    def take_wake(self, data: dict) -> Wake:
        previous = self.ledger.by_token[data["device"]].wakes
        before = previous[-1] if previous else None
        wake = self.ledger.take_wake(data)
        device = wake.device
        if data["apnsID"]:
            name = "a wake carries the payload of the push it names"
            expected = device.payload(wake.sequence)
            self.verdicts.equal(name, f"payload of {data['apnsID']}", data["payload"], expected)
        if device.topic == KEPT:
            self.check_launch(device, before, wake)
        self.on_event("wake")
        return wake

    def check_launch(self, device: Device, before: Wake | None, wake: Wake) -> None:
        """Checks that the launch interval and the attempts hold across restarts.

        A wake is lost with its attempt counted if its worker left the stream. The same applies to a wake that was sent
        too late to be read, of which no client knows.
        """
        ended = device.ended
        if before is None:
            return
        if ended:
            apart = wake.launched_at - ended[-1].launched_at
            self.verdicts.check(
                "launches of a device are apart by the interval, across restarts",
                apart >= POLICY["launchInterval"] * 1000 - 50,
                f"device {device.index} was launched {apart} ms after the launch before it",
            )
        if before.sequence != wake.sequence or before.outcome is None:
            return
        is_leaving = wake.leaves % 2 == 1
        if before.leaves != wake.leaves or is_leaving or before.is_left:
            return
        again = before.attempt + (0 if before.outcome == "lost" else 1)
        self.verdicts.equal(
            "a restart takes the attempt of a wake in flight back, and no other",
            f"attempt of device {device.index} after {before.outcome}", wake.attempt, again,
        )  # fmt: skip

    async def answer(self, client: Client, wake: Wake) -> None:
        if self.is_settling:
            await self.report(client, wake, "newData")
            return
        drawn = self.source.random()
        if drawn < 0.05:
            return
        if drawn < 0.5:
            await asyncio.sleep(self.source.random() * 0.5)
        result = self.source.choices(RESULTS, [6, 2, 2])[0]
        await self.report(client, wake, result)

    async def report(self, client: Client, wake: Wake, result: str) -> None:
        """Sends a result, and records the end of the wake according to the answer."""
        is_new = wake.posted is None
        wake.posted = result
        response = await client.request("POST", f"/v1/wakes/{wake.id}", json.dumps({"result": result}).encode())
        if response.status == 204:
            wake.outcome = result
            self.ledger.results_answered += is_new
            self.on_event("result")
        elif response.status == 409:
            wake.outcome = response.json()["outcome"]
        elif response.status == 404 and wake.device.topic == MIXED and wake not in wake.device.wakes[-REMEMBERED:]:
            wake.outcome = "forgotten"
        elif not await self.is_refused(response):
            self.verdicts.check(
                "results are taken, or answered with how the wake ended", False,
                f"result of {wake.id} was answered {response.status} {response.body!r}; {await self.story(wake)}",
            )  # fmt: skip

    async def story(self, wake: Wake) -> str:
        """Returns the data of the ledger and the gateway about a wake's device, for a failure that should not
        happen."""
        known = [
            f"{each.id} attempt {each.attempt} at {each.launched_at} {each.outcome}" for each in wake.device.wakes[-6:]
        ]
        admin = await self.connect(self.gateway.admin, None)
        explained = (await admin.request("GET", f"/v1/devices/{wake.device.token}")).json()
        await admin.close()
        recent = [f"{event['at']} {event['event']} {event['detail']}" for event in explained["recent"][:16]]
        return (
            f"now {int(time.time() * 1000)}; wakes of device {wake.device.index}: {known}; the gateway's: {recent}, "
            f"in flight {explained['inFlight']}"
        )

    # Operators

    async def register_all(self) -> None:
        client = await self.edge()
        await asyncio.gather(*(self.register(client, device) for device in self.ledger.devices))
        await client.close()

    async def administer(self) -> None:
        """Registers devices, removes them, and reports conditions, for one device after another."""
        await self.on_each(await self.edge(), self.change, rest_seconds=0.01)

    async def change(self, client: Client, device: Device) -> None:
        if True not in device.registered:
            await self.register(client, device)
        elif device.topic == MIXED and self.source.random() < 0.3:
            await self.remove(client, device)
        elif device.topic == MIXED and self.source.random() < 0.1:
            await self.simulate(device, "launch")
        elif device.wakes and device.wakes[-1].outcome is None and self.source.random() < 0.5:
            await self.simulate(device, "expiration")
        else:
            await self.report_conditions(client, device)

    async def register(self, client: Client, device: Device) -> None:
        was_removed = device.registered == [False]
        device.conditions = [*device.conditions, dict(DEFAULT_CONDITIONS)]
        request = ("POST", f"/v1/topics/{device.topic}/devices", json.dumps({"token": device.token}).encode())
        if await self.become(device, True, client, request, 201) and was_removed:
            device.conditions = [dict(DEFAULT_CONDITIONS)]

    async def remove(self, client: Client, device: Device) -> None:
        await self.become(device, False, client, ("DELETE", f"/v1/devices/{device.token}"), 204)

    async def become(self, device: Device, is_registered: bool, client: Client, request: tuple, expected: int) -> bool:
        """Returns true if the request was answered, so that the device is now registered, or removed."""
        before = list(device.registered)
        device.registered = [*before, is_registered]
        is_answered = await self.confirm(await client.request(*request), expected)
        if is_answered:
            device.registered = [is_registered]
        elif self.is_draining:
            device.registered = before
        return is_answered

    async def report_conditions(self, client: Client, device: Device) -> None:
        conditions = dict(DEFAULT_CONDITIONS, batteryLevel=self.source.randint(30, 99) / 100)
        if device.topic == MIXED:
            conditions["appState"] = self.source.choice(["background", "background", "active", "forceQuit"])
            conditions["network"] = self.source.random() < 0.9
        before = list(device.conditions)
        device.conditions = [*before, conditions]
        body = json.dumps(conditions).encode()
        response = await client.request("PATCH", f"/v1/devices/{device.token}/conditions", body)
        if device.registered != [True] and response.status == 404:
            device.conditions = before
        elif await self.confirm(response, 200):
            device.conditions = [conditions]
        elif self.is_draining:
            device.conditions = before

    async def simulate(self, device: Device, what: str) -> None:
        client = await self.connect(self.gateway.admin, None)
        async with self.leaving:
            response = await client.request("POST", f"/v1/devices/{device.token}/simulate-{what}")
        if response.status != 409:
            await self.confirm(response, 202)
        await client.close()

    async def confirm(self, response: Response, expected: int) -> bool:
        if await self.is_refused(response):
            return False
        self.ledger.changes_answered += 1
        self.on_event("change")
        return self.verdicts.equal("registrations and conditions are taken", "answer", response.status, expected)

    async def poll_statistics(self) -> None:
        """Reads the totals repeatedly: they must balance in every answer, and no counter may decrease."""
        client = await self.connect(self.gateway.admin, None)
        while not client.is_lost:
            response = await client.request("GET", "/v1/stats")
            if response.status == 200:
                self.take_statistics(response.json())
            else:
                # A query in the step whose commit fails is refused with it. Sent again, it is answered.
                self.unanswered_polls += 1
                name = "statistics are answered, but in the step that fails, and when the disk cannot even be read"
                may_be = self.is_failing and response.status == 503 and (self.is_disk_gone or self.unanswered_polls < 2)
                self.verdicts.check(name, may_be, f"answered {response.status} {response.body!r}")
            await asyncio.sleep(0.01)

    def take_statistics(self, stats: dict) -> None:
        fault = imbalance(stats)
        self.verdicts.check("the counters balance in every answer", fault is None, fault or "")
        for path, value in counters(stats).items():
            highest = self.ledger.highest.get(path, 0)
            name = "no counter is ever lower than it was seen"
            self.verdicts.check(name, value >= highest, f"{'.'.join(path)} fell from {highest} to {value}")
            self.ledger.highest[path] = max(highest, value)
        self.no_wake_seen.append((time.monotonic(), stats["pushes"]["noWake"]))
