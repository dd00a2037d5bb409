"""Providers that push to any gateway, workers that get wakes from any gateway and answer to any, and readers of
counters."""

import asyncio
import contextlib
import json
import random
import time
import uuid

from clients import http1
from cluster import postgres
from cluster.gateways import EXECUTION_WINDOW, LAUNCH_INTERVAL, Gateways
from cluster.ledger import LOST, TOPIC, Device, Ledger, Wake
from crash.ledger import counters, imbalance
from shared.verdicts import Verdicts

PUSH_FIELDS = f"apns-topic: {TOPIC}\r\napns-push-type: background\r\napns-priority: 5\r\n"
# The share of pushes with an apns-id of the sender. They can be sent again.
OWN_SHARE = 0.8
STREAMS_A_GATEWAY, SLOTS, POSTERS = 2, 64, 8
# How long a worker keeps a stream before it leaves it, with all unanswered wakes.
STREAM_SECONDS = (5, 20)
# Pauses after a failure, so that a gateway that is down does not receive constant requests.
PAUSE_SECONDS = 0.05
BALANCED = "the counters of every gateway balance in every answer"
MONOTONOUS = "no counter is ever lower than any gateway showed it before"


class Load:
    def __init__(
        self, gateways: Gateways, database: postgres.Database, ledger: Ledger, verdicts: Verdicts, seed: int, rate: int,
        lanes: int,
    ):  # fmt: skip
        self.gateways, self.database, self.ledger, self.verdicts = gateways, database, ledger, verdicts
        self.rate, self.lanes = rate, lanes
        self.sources = [random.Random(seed * 1_000 + lane) for lane in range(lanes)]
        self.source = random.Random(seed)
        self.is_pushing = self.is_working = True
        self.results: asyncio.Queue[Wake] = asyncio.Queue()
        self.highest: dict[tuple[str, ...], int] = {}
        self.providers: list[asyncio.Task] = []
        self.others: list[asyncio.Task] = []

    @property
    def count(self) -> int:
        return len(self.gateways.all)

    def start(self) -> None:
        self.providers = [asyncio.create_task(self.provider(lane)) for lane in range(self.lanes)]
        for gateway in range(self.count):
            self.others += [asyncio.create_task(self.worker(gateway)) for _ in range(STREAMS_A_GATEWAY)]
            self.others.append(asyncio.create_task(self.reader(gateway)))
        self.others.append(asyncio.create_task(self.timekeeper()))
        self.others += [asyncio.create_task(self.poster()) for _ in range(POSTERS * self.count)]

    async def stop_pushing(self) -> None:
        """Returns once every provider has its last answer, or has given up."""
        self.is_pushing = False
        await asyncio.gather(*self.providers)

    async def stop(self) -> None:
        self.is_working = False
        for task in self.others:
            task.cancel()
        for ended in await asyncio.gather(*self.others, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended

    def check_running(self) -> None:
        """Raises the error that ended a task of the load, if there is one."""
        for task in (*self.providers, *self.others):
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error

    # MARK: Providers

    async def provider(self, lane: int) -> None:
        """Pushes to the devices of the lane, one push after another."""
        source, pool = self.sources[lane], http1.Pool()
        devices = self.ledger.devices[lane :: self.lanes]
        due = time.monotonic() + source.random() * self.lanes / self.rate
        while self.is_pushing:
            due = max(due + self.lanes / self.rate, time.monotonic() - 1)
            await asyncio.sleep(max(0, due - time.monotonic()))
            await self.push(source.choice(devices), source, pool)
        pool.close()

    async def push(self, device: Device, source: random.Random, pool: http1.Pool) -> None:
        """Sends one push until it is answered 200. A push without an apns-id is sent once and may then have been
        accepted."""
        own = str(uuid.UUID(int=source.getrandbits(128), version=4)) if source.random() < OWN_SHARE else None
        fields = PUSH_FIELDS + (f"apns-id: {own}\r\n" if own else "")
        fields += "apns-expiration: 0\r\n" if device.is_fleeting else ""
        filler = "x" * source.randrange(8, 400)
        body = json.dumps({"aps": {"content-available": 1}, "filler": filler}, separators=(",", ":")).encode()
        is_open = False
        while True:
            gateway = source.randrange(self.count)
            sent = time.monotonic()
            try:
                status, header, content = await pool.request(
                    gateway, self.gateways.all[gateway].plain, "POST", f"/3/device/{device.token}", fields, body
                )
            except http1.Lost as lost:
                is_open = is_open or lost.is_open
                self.ledger.without_answer += lost.is_open
            else:
                if status == 200:
                    name = header.get("apns-id", "")
                    self.ledger.acknowledge(device, name, sent, time.monotonic(), gateway)
                    self.ledger.repaired += is_open
                    if own and name.lower() != own:
                        self.ledger.unexpected.append(f"the push {own} was answered as {name}")
                    return
                self.ledger.refused[status] = self.ledger.refused.get(status, 0) + 1
                # After 503, the commit may have succeeded; after 429, it was never tried.
                is_open = is_open or status == 503
                if status not in (429, 503):
                    self.ledger.unexpected.append(f"a push was answered {status} {content!r}")
                    return
            if is_open and (own is None or not self.is_pushing):
                device.perhaps += 1
                self.ledger.perhaps.append(own or "")
                return
            if not self.is_pushing:
                return
            await asyncio.sleep(PAUSE_SECONDS * (0.5 + source.random()))

    # MARK: Workers

    async def worker(self, gateway: int) -> None:
        """Opens streams of one gateway, one after another."""
        path = f"/v1/topics/{TOPIC}/wakes?slots={SLOTS}&name=soak"
        while self.is_working:
            connection = None
            try:
                connection = await http1.Connection.open(self.gateways.all[gateway].plain)
                leaves = time.monotonic() + self.source.uniform(*STREAM_SECONDS)
                async for event in connection.events(path):
                    if time.monotonic() > leaves:
                        break
                    if event.startswith(b"event: wake"):
                        lines = [line[5:].lstrip() for line in event.split(b"\n") if line.startswith(b"data:")]
                        data = json.loads(b"\n".join(lines))
                        wake = self.ledger.take_wake(data, EXECUTION_WINDOW, LAUNCH_INTERVAL, gateway)
                        self.results.put_nowait(wake)
            except http1.Lost:
                pass
            finally:
                if connection:
                    connection.close()
            await asyncio.sleep(PAUSE_SECONDS)

    async def poster(self) -> None:
        """Sends results to any gateway until each has a definite answer."""
        pool, source = http1.Pool(), random.Random(self.source.random())
        while True:
            wake = await self.results.get()
            while wake.outcome is None:
                gateway = source.randrange(self.count)
                with contextlib.suppress(http1.Lost):
                    status, _, content = await pool.request(
                        gateway, self.gateways.all[gateway].plain, "POST", f"/v1/wakes/{wake.id}",
                        "content-type: application/json\r\n", b'{"result":"newData"}',
                    )  # fmt: skip
                    wake.outcome = self.outcome(wake, status, content)
                if wake.outcome is None:
                    await asyncio.sleep(PAUSE_SECONDS)

    def outcome(self, wake: Wake, status: int, content: bytes) -> str | None:
        match status:
            case 204:
                return "newData"
            case 409:
                return json.loads(content).get("outcome", "")
            case 404:
                return "unknown"
            case 503 | 429:
                return None
        self.ledger.unexpected.append(f"a result of {wake.id} was answered {status} {content!r}")
        return "unknown"

    # MARK: Counters

    async def timekeeper(self) -> None:
        """Saves the database's data about wakes with short intervals before the database deletes it."""
        while True:
            await asyncio.sleep(60)
            with contextlib.suppress(postgres.PostgresFault):
                await self.read_deadlines()

    async def read_deadlines(self) -> None:
        """Reads the deadlines in policy time; workers get wall time, which includes a measured difference."""
        while self.ledger.close:
            some = self.ledger.close[:1000]
            names = ",".join(some)
            sql = f"SELECT replace(id::text, '-', ''), deadline FROM wakegate.wake WHERE id = ANY('{{{names}}}'::uuid[])"
            told = await asyncio.to_thread(self.database.primary.query, sql, postgres.DATABASE)
            for line in told.splitlines():
                name, _, deadline = line.partition("|")
                self.ledger.deadlines[name] = int(deadline)
            del self.ledger.close[: len(some)]

    async def reader(self, gateway: int) -> None:
        pool = http1.Pool()
        while True:
            await asyncio.sleep(0.25)
            await self.read(gateway, pool)

    async def read(self, gateway: int, pool: http1.Pool) -> dict | None:
        """Returns the checked totals of one gateway."""
        before = dict(self.highest)
        try:
            status, _, content = await pool.request(gateway, self.gateways.all[gateway].admin, "GET", "/v1/stats")
        except http1.Lost:
            return None
        if status != 200:
            return None
        stats = json.loads(content)
        fault = imbalance(stats) or launches_fault(stats)
        self.verdicts.check(BALANCED, fault is None, f"gateway {gateway}: {fault}")
        for path, value in counters(stats).items():
            least = before.get(path, 0)
            detail = f"gateway {gateway}: {'.'.join(path)} fell from {least} to {value}"
            self.verdicts.check(MONOTONOUS, value >= least, detail)
            self.highest[path] = max(self.highest.get(path, 0), value)
        return stats


def launches_fault(stats: dict) -> str | None:
    """Returns a fault unless every launch has ended or is in flight."""
    wakes, in_flight = stats["wakes"], stats["pushes"]["inFlight"]
    ended = sum(wakes["results"].values())
    if wakes["launched"] == ended + in_flight:
        return None
    return f"launched {wakes['launched']} is not {ended} that ended and {in_flight} in flight"


def counts(wake: Wake) -> bool:
    """Returns true if the wake used up its device's interval."""
    return wake.outcome not in (None, LOST, "unknown")
