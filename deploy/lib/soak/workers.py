"""Workers that are killed, frozen, cut off and slow, while 10,000 devices are woken: every push ends once, none is stuck,
and the workers beside them do not notice."""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import statistics
import tempfile
import time

from bench.streams import FleetProcess
from clients.h2_client import Client
from shared.served_gateway import ServedGateway
from shared.verdicts import Verdicts

TOPIC = "com.example.workers"
DEVICES = 10_000
PUSHES_A_SECOND = 400
EXECUTION_WINDOW_SECONDS = 5
STUCK_SECONDS = EXECUTION_WINDOW_SECONDS + 5
SETTLE_SECONDS = 120
LANES = 16
# Each kind of worker: connections of its process, and wakes that each holds at once.
CONNECTIONS, SLOTS = 4, 32
# When what happens to them begins and ends, in seconds after the first push.
KILLED_AT, FROZEN_AT, CUT_AT, OVER_AT = 4.0, 6.0, 8.0, 20.0
SETTINGS = {
    "registration": "open",
    "policy": {"executionWindow": EXECUTION_WINDOW_SECONDS, "launchInterval": 1, "maxAttempts": 10},
}


class Proxy:
    """Stands between workers and the gateway. `drops` throws away what comes, both ways, and says nothing to anybody;
    `delay` holds each piece back for so many seconds."""

    def __init__(self, target: str, delay: float = 0):
        self.host, _, self.port = target.rpartition(":")
        self.delay, self.drops = delay, False
        self.tasks: set[asyncio.Task] = set()
        self.address = ""

    async def start(self) -> None:
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        self.address = "127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self.host, int(self.port))
        for pair in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self.pump(*pair))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(65536):
                if self.delay:
                    await asyncio.sleep(self.delay)
                if self.drops:
                    continue
                writer.write(piece)
                await writer.drain()
        # What was cut off stays cut off: the other side is to find out by itself.
        if not self.drops:
            writer.close()


class Run:
    def __init__(self, gateway: ServedGateway, verdicts: Verdicts, source: random.Random):
        self.gateway, self.verdicts = gateway, verdicts
        self.tokens = [f"{source.getrandbits(256):064x}" for _ in range(DEVICES)]
        self.fleets: list[FleetProcess] = []
        self.milliseconds: list[float] = []

    def apns_id(self, number: int) -> str:
        return f"{number:08x}-0000-4000-8000-000000000000"

    def workers(self, address: str | None = None, **more: object) -> FleetProcess:
        fleet = FleetProcess(
            address=address or self.gateway.addresses.edge, ca=self.gateway.addresses.ca, topic=TOPIC,
            connections=CONNECTIONS, slots=SLOTS, by_device=False, **more,
        )  # fmt: skip
        self.fleets.append(fleet)
        return fleet

    async def push_all(self) -> None:
        """Each device gets one push, evenly over time."""
        client = await Client.connect(self.gateway.addresses.edge, self.gateway.addresses.ca)
        started = time.monotonic()

        async def lane(first: int) -> None:
            for number in range(first, DEVICES, LANES):
                await asyncio.sleep(max(0, started + number / PUSHES_A_SECOND - time.monotonic()))
                headers = [("apns-topic", TOPIC), ("apns-id", self.apns_id(number)), ("apns-push-type", "background")]
                body = b'{"aps":{"content-available":1}}'
                path = f"/3/device/{self.tokens[number]}"
                response = await client.request("POST", path, body, [*headers, ("apns-priority", "5")])
                self.verdicts.equal("every push is taken", f"push {number}", response.status, 200)

        await asyncio.gather(*(lane(first) for first in range(LANES)))
        await client.close()

    async def trouble(self, frozen: FleetProcess, killed: FleetProcess, proxy: Proxy) -> None:
        """What happens to the workers while the pushes come."""
        started = time.monotonic()

        async def until(moment: float) -> None:
            await asyncio.sleep(max(0, started + moment - time.monotonic()))

        # They answer within a moment: only one that was stopped before is sure to die with wakes in its hands.
        await until(KILLED_AT - 1)
        os.kill(killed.process.pid, signal.SIGSTOP)
        await until(KILLED_AT)
        killed.process.kill()
        await until(FROZEN_AT)
        os.kill(frozen.process.pid, signal.SIGSTOP)
        await until(CUT_AT)
        proxy.drops = True
        await until(OVER_AT)
        os.kill(frozen.process.pid, signal.SIGCONT)
        proxy.drops = False
        # They come back, as a supervisor brings them back.
        for address in (None, None, proxy.address):
            await asyncio.to_thread(self.workers(address).next, "subscribed", 30)

    async def stats(self, admin: Client) -> dict:
        return (await admin.request("GET", "/v1/stats")).json()

    async def settle(self, admin: Client) -> dict:
        """Waits until every push has come to its end."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            stats = await self.stats(admin)
            pushes = stats["pushes"]
            if pushes["pending"] + pushes["inFlight"] == 0 or time.monotonic() > deadline:
                return stats
            await asyncio.sleep(0.2)

    def compare_books(self, stats: dict) -> None:
        pushes, wakes = stats["pushes"], stats["wakes"]
        name = "every push ends exactly once in the books"
        ends = pushes["completed"] + pushes["coalesced"] + sum(pushes["discarded"].values())
        self.verdicts.equal(name, "accepted", pushes["accepted"], DEVICES)
        self.verdicts.equal(name, "completed, coalesced and discarded", ends, DEVICES)
        self.verdicts.equal(name, "completed", pushes["completed"], DEVICES)
        self.verdicts.equal(name, "pending and in flight", pushes["pending"] + pushes["inFlight"], 0)
        self.verdicts.equal(name, "launched", wakes["launched"], sum(wakes["results"].values()))
        results = ", ".join(f"{count:,} {result}" for result, count in wakes["results"].items())
        self.verdicts.note(name, f"{wakes['launched']:,} wakes: {results}")
        name = "the faults were met"
        for result in ("lost", "expired"):
            self.verdicts.check(name, wakes["results"][result] > 0, f"no wake was {result}")

    async def compare_ways(self, admin: Client) -> None:
        """By the delivery log: one end a push, and no wake longer in flight than it may be."""
        longest = 0.0

        async def lane(first: int) -> None:
            nonlocal longest
            for number in range(first, DEVICES, LANES):
                token = self.tokens[number]
                way = (await admin.request("GET", f"/v1/pushes/{self.apns_id(number)}?device={token}")).json()
                ends = [event for event in way["events"] if event.get("detail") == "newData"]
                name = "every push has one end in the delivery log"
                self.verdicts.equal(name, f"ends of push {number}", (way["state"], len(ends)), ("completed", 1))
                launched = None
                for event in way["events"]:
                    if event["event"] == "launched":
                        launched = event["at"]
                    elif event["event"] == "result":
                        longest = max(longest, (event["at"] - launched) / 1000)
                        launched = None
                self.milliseconds.append(ends[0]["at"] - way["receivedAt"] if ends else float("inf"))
                name = f"no wake is in flight for longer than {STUCK_SECONDS} s"
                self.verdicts.check(name, launched is None and longest <= STUCK_SECONDS, f"push {number}: {longest} s")
                self.verdicts.note(name, f"longest {longest:.2f} s, window {EXECUTION_WINDOW_SECONDS} s")

        await asyncio.gather(*(lane(first) for first in range(LANES)))

    def compare_others(self, others: FleetProcess) -> None:
        name = "the workers beside them do not notice"
        told = others.ask()
        self.verdicts.equal(name, "connections they lost", told["lost"], 0)
        # One that is refused ends their process.
        self.verdicts.equal(name, "results that counted, of their wakes", told["answered"], told["woken"])
        self.verdicts.check(name, told["woken"] > DEVICES // 10, f"they had only {told['woken']} wakes")
        median = statistics.median(self.milliseconds)
        self.verdicts.check(name, median < 1000, f"the median push took {median} ms to its end")
        self.verdicts.note(name, f"{told['woken']:,} wakes; half of all pushes ended within {median:.0f} ms")


async def run(program: str, folder: str, verdicts: Verdicts, seed: int) -> None:
    gateway = ServedGateway(program, folder, SETTINGS)
    gateway.start()
    load = Run(gateway, verdicts, random.Random(seed))
    proxies: list[Proxy] = []
    try:
        cut, slow = Proxy(gateway.addresses.edge), Proxy(gateway.addresses.edge, delay=0.3)
        for proxy in (cut, slow):
            await proxy.start()
            proxies.append(proxy)
        places = (None, None, None, cut.address, slow.address)
        others, killed, frozen, *_ = fleets = [load.workers(place, is_strict=place is None) for place in places]
        for fleet in fleets:
            await asyncio.to_thread(fleet.next, "subscribed", 30)
        await asyncio.gather(load.push_all(), load.trouble(frozen, killed, cut))
        admin = await Client.connect(gateway.addresses.admin, None)
        load.compare_books(await load.settle(admin))
        await load.compare_ways(admin)
        load.compare_others(others)
        await admin.close()
    finally:
        for fleet in load.fleets:
            fleet.__exit__()
        for proxy in proxies:
            await proxy.stop()
        gateway.end(signal.SIGKILL)


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="wakegate-workers.") as folder:
        asyncio.run(run(program, folder, verdicts, options.seed))
    return verdicts
