"""A gateway that restarts under a thousand workers of the SDK: all come back, spread, and no wake is lost."""

import argparse
import asyncio
import json
import os
import resource
import signal
import subprocess
import tempfile
import time

from clients.h2_client import Client, ConnectionLost
from shared.processes import cpu_seconds, free_port
from shared.served_gateway import ServedGateway
from shared.verdicts import Verdicts

TOPIC = "com.example.sdk"
WORKERS = 1000
DEVICES = 300
WORK_MILLISECONDS = 600
BACK_SECONDS = 5
SETTLED_SECONDS = 60
# The largest share of the workers that may come within a tenth of a second.
CROWD = 0.35
ROUNDS = 6


class Workers:
    """One process of the SDK's workers; `seen` holds what each line said, and when it was read."""

    def __init__(self, program: str, gateway: ServedGateway):
        command = [program, f"https://{gateway.addresses.edge}", gateway.addresses.ca, TOPIC]
        self.command = [*command, "--workers", str(WORKERS), "--slots", "4"]
        self.seen: dict[str, list[float]] = {}

    async def __aenter__(self) -> "Workers":
        self.process = await asyncio.create_subprocess_exec(
            *self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, limit=1 << 20
        )
        self.reader = asyncio.create_task(self.read())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self.reader

    async def read(self) -> None:
        async for line in self.process.stdout:
            event = json.loads(line)
            # By the workers' own clock: how fast we read does not matter.
            self.seen.setdefault(event["event"], []).append(event["at"] / 1000)

    def take(self, name: str) -> list[float]:
        return self.seen.pop(name, [])


async def statistics(gateway: ServedGateway) -> dict:
    client = await Client.connect(gateway.addresses.admin)
    try:
        return (await client.request("GET", "/v1/stats")).json()
    finally:
        await client.close()


async def until(gateway: ServedGateway, seconds: float, holds) -> tuple[dict, float]:
    """The statistics for which it holds, or the last ones, and how long that took."""
    begun = time.monotonic()
    while True:
        try:
            found = await statistics(gateway)
        except ConnectionLost:
            found = None
        took = time.monotonic() - begun
        if found and (holds(found) or took > seconds):
            return found, took
        await asyncio.sleep(0.02)


async def push(gateway: ServedGateway, first: int) -> int:
    """Pushes to devices of their own; how many were answered 200."""
    client = await Client.connect(gateway.addresses.edge, gateway.addresses.ca)
    body = json.dumps({"aps": {"content-available": 1}, "do": "answer", "milliseconds": WORK_MILLISECONDS}).encode()
    head = [("apns-topic", TOPIC), ("apns-push-type", "background"), ("apns-priority", "5")]
    requests = [client.request("POST", f"/3/device/{first + n:064x}", body, head) for n in range(DEVICES)]
    answers = await asyncio.gather(*requests)
    await client.close()
    return sum(answer.status == 200 for answer in answers)


def crowd(moments: list[float]) -> float:
    """The largest share within a tenth of a second."""
    tenths: dict[int, int] = {}
    for moment in moments:
        tenths[int(moment * 10)] = tenths.get(int(moment * 10), 0) + 1
    return max(tenths.values(), default=0) / max(1, len(moments))


async def restart(gateway: ServedGateway, workers: Workers, verdicts: Verdicts, number: int) -> tuple[float, float]:
    """One restart under load; how long until all workers were back, from the ready line on, and the largest share of
    them that came within a tenth of a second."""
    with_signal = signal.SIGKILL if number % 2 == 0 else signal.SIGTERM
    name = f"round {number + 1}, {with_signal.name}"
    accepted = await push(gateway, number * DEVICES)
    verdicts.equal("every push is answered 200", name, accepted, DEVICES)
    found, _ = await until(gateway, 10, lambda stats: stats["workers"]["busy"] >= 100)
    verdicts.check("wakes are in flight at the restart", found["workers"]["busy"] >= 100, f"{name}: {found['workers']}")
    workers.take("subscribed")
    await asyncio.to_thread(gateway.end, with_signal)
    await asyncio.to_thread(gateway.start)
    found, took = await until(gateway, 3 * BACK_SECONDS, lambda stats: stats["workers"]["connected"] == WORKERS)
    back = found["workers"]["connected"]
    check = f"all {WORKERS:,} workers are back within {BACK_SECONDS} s"
    verdicts.check(check, back == WORKERS and took <= BACK_SECONDS, f"{name}: {back:,} after {took:.1f} s")
    share = crowd(workers.take("subscribed"))
    check = f"no more than {CROWD:.0%} of them come within a tenth of a second"
    verdicts.check(check, 0 < share <= CROWD, f"{name}: {share:.0%}")
    total = (number + 1) * DEVICES
    ended = lambda stats: stats["pushes"]["pending"] + stats["pushes"]["inFlight"] == 0
    found, _ = await until(gateway, SETTLED_SECONDS, ended)
    pushes = found["pushes"]
    check = "every push is completed once"
    verdicts.equal(check, f"{name}: accepted", pushes["accepted"], total)
    verdicts.equal(check, f"{name}: completed", pushes["completed"], total)
    results = found["wakes"]["results"]
    verdicts.equal("no handler is left hanging", f"{name}: expired", results["expired"], 0)
    return took, share


async def run(program: str, folder: str, verdicts: Verdicts) -> None:
    edge = f"127.0.0.1:{free_port()}"
    gateway = ServedGateway(program, folder, {"edge": edge, "registration": "open"})
    await asyncio.to_thread(gateway.start)
    path = os.path.join(os.path.dirname(program), "wakegate-workers")
    try:
        async with Workers(path, gateway) as workers:
            found, took = await until(gateway, 30, lambda stats: stats["workers"]["connected"] == WORKERS)
            verdicts.equal("all workers subscribe", "connected", found["workers"]["connected"], WORKERS)
            rounds = [await restart(gateway, workers, verdicts, number) for number in range(ROUNDS)]
            check = f"all {WORKERS:,} workers are back within {BACK_SECONDS} s"
            verdicts.note(check, "seconds: " + ", ".join(f"{took:.1f}" for took, _ in rounds))
            check = f"no more than {CROWD:.0%} of them come within a tenth of a second"
            verdicts.note(check, "the most: " + ", ".join(f"{share:.0%}" for _, share in rounds))
            idle = cpu_seconds(workers.process.pid)
            await asyncio.sleep(5)
            idle = (cpu_seconds(workers.process.pid) - idle) / 5
            with open(f"/proc/{workers.process.pid}/statm", encoding="ascii") as file:
                resident = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            workers.process.send_signal(signal.SIGTERM)
            status = await asyncio.wait_for(workers.process.wait(), 30)
            check = "stopped workers end by themselves and lose nothing"
            verdicts.equal(check, "exit status", status, 0)
            verdicts.note(check, f"{resident / WORKERS / 1000:.0f} kB a worker, {idle:.1%} of a core idle")
    finally:
        await asyncio.to_thread(gateway.end, signal.SIGTERM)


def soak(program: str, _: argparse.Namespace) -> Verdicts:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="wakegate-sdk-") as folder:
        asyncio.run(run(program, folder, verdicts))
    return verdicts
