"""Full and read-only disks: a tmpfs of 64 MB under a running gateway, and at its start."""

import argparse
import asyncio
import glob
import json
import os
import shutil
import subprocess
import tempfile

from clients import http1
from clients.h2_client import Client
from crash import driver
from crash.load import Load
from shared.processes import StartFailed
from shared.served_gateway import ServedGateway
from shared.verdicts import Verdicts
from soak import disks
from soak.disks import MemoryFolder

MEGABYTES_AFTER = 256
LANES = 32
TOPIC = "com.example.full"
DEVICES = 80
# A word of the expected remedy, by the beginning of the case's name.
REMEDIES = {"full": "ree space", "read-only": "writable"}


class Filling:
    """Pushes of 4 KiB to new devices until the disk is full."""

    def __init__(self, load: Load):
        self.load = load
        self.answered: list[tuple[str, str]] = []
        self.number = 0
        self.is_full = False

    async def run(self) -> None:
        client = await self.load.edge()
        await asyncio.gather(*(self.lane(client) for _ in range(LANES)))
        await client.close()

    async def lane(self, client: Client) -> None:
        filler = "x" * 4000
        body = json.dumps({"aps": {"content-available": 1}, "filler": filler}).encode()
        while not self.is_full:
            self.number += 1
            token, apns_id = f"{self.number:064x}", f"{self.number:08x}-0000-4000-8000-000000000000"
            head = [("apns-topic", TOPIC), ("apns-id", apns_id), ("apns-push-type", "background")]
            response = await client.request("POST", f"/3/device/{token}", body, head)
            if response.status == 200:
                self.answered.append((token, apns_id))
            else:
                await self.load.is_refused(response)
                self.is_full = True
                name = "a full disk is met"
                self.load.verdicts.equal(name, "first other answer", response.status, 503)

    async def compare(self, load: Load) -> None:
        """Checks that every push that was answered 200 waits on its device."""
        admin = load.gateway.admin
        name = "every push answered before the disk was full is there after it was given room, and its way told"
        devices = await http1.read_all(admin, [f"/v1/devices/{token}" for token, _ in self.answered])
        ways = await http1.read_all(admin, [f"/v1/pushes/{apns_id}" for _, apns_id in self.answered])
        for (token, apns_id), (_, device), (status, way) in zip(self.answered, devices, ways, strict=True):
            found = (device.get("pending") or {}).get("apnsID")
            load.verdicts.equal(name, f"pending of {token}", found, apns_id)
            found = (status, way.get("state"), [step["event"] for step in way.get("events", [])])
            load.verdicts.equal(name, f"way of {apns_id}", found, (200, "pending", ["received"]))
        [(_, stats)] = await http1.read_all(admin, [f"/v1/stats/topics/{TOPIC}"])
        load.verdicts.within(name, "accepted", stats["pushes"]["accepted"], len(self.answered), self.number)


def sizes_and_times(state: str) -> dict[str, tuple[int, int]]:
    """Returns those of the journal and its log, without the index of the log, which is rebuilt at every start."""
    files = [path for path in glob.glob(os.path.join(state, "journal*")) if not path.endswith("-shm")]
    return {path: (os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in files}


async def look(load: Load, state: str, others: tuple[int, int]) -> str:
    """Compares the answers of a failed gateway with the rules, and returns the cause that /readyz reports.

    `others` are pushes of another client: those answered 200, and the maximum number sent.
    """
    verdicts: Verdicts = load.verdicts
    admin = await load.connect(load.gateway.admin, None)
    edge = await load.edge()
    name = "a gateway whose disk failed is alive, not ready, and says why"
    verdicts.equal(name, "/healthz", (await admin.request("GET", "/healthz")).status, 200)
    ready = await admin.request("GET", "/readyz")
    verdicts.equal(name, "/readyz", ready.status, 503)
    cause = ready.body.decode(errors="replace")
    verdicts.check(name, "journal" in cause, f"/readyz says {cause!r}, which names no file")

    before = sizes_and_times(state)
    device = next(device for device in load.ledger.devices if device.registered == [True])
    name = "once the disk has failed pushes and results are answered 503 ServiceUnavailable"
    for _ in range(20):
        push = load.begin_push(device)
        body = json.dumps(device.payload(push.sequence)).encode()
        headers = load.headers(device, push.sequence)
        answer = await edge.request("POST", f"/3/device/{device.token}", body, headers)
        load.leave_open(push)
        found = (answer.status, json.loads(answer.body or b"{}").get("reason"))
        verdicts.equal(name, "push", found, (503, "ServiceUnavailable"))
    open_wakes = [wake for wake in load.ledger.wakes.values() if wake.outcome is None]
    for wake in open_wakes[:3]:
        answer = await edge.request("POST", f"/v1/wakes/{wake.id}", b'{"result":"newData"}')
        wake.posted = wake.posted or "newData"
        found = (answer.status, json.loads(answer.body or b"{}").get("reason"))
        verdicts.equal(name, "result", found, (503, "ServiceUnavailable"))

    name = "statistics and explain answer from the last durable state"
    first = (await admin.request("GET", "/v1/stats")).json()
    load.take_statistics(first)
    known, perhaps = sum(load.ledger.accepted.values()), sum(load.ledger.perhaps.values())
    least, most = known + others[0], known + perhaps + others[1]
    verdicts.within(name, "accepted", first["pushes"]["accepted"], least, most)
    explained = await admin.request("GET", f"/v1/devices/{device.token}")
    verdicts.equal(name, "explain", (explained.status, explained.json()["token"]), (200, device.token))
    name = "once the disk has failed the journal's files do not change"
    verdicts.equal(name, "sizes and times of change", sizes_and_times(state), before)
    await edge.close()
    await admin.close()
    return cause


async def fill(gateway: ServedGateway, disk: MemoryFolder, verdicts: Verdicts, seed: int) -> None:
    """Pushes until 503, checks the rules, adds space, restarts, and checks that everything exists."""
    run = driver.Crashes(gateway, DEVICES, verdicts, seed)
    await run.begin()
    load = run.load()
    load.is_failing = True
    everybody = asyncio.create_task(load.run())
    filling = Filling(load)
    await filling.run()
    cause = await look(load, gateway.state, (len(filling.answered), filling.number))
    gateway.end(9)
    await everybody
    verdicts.note("a full disk is met", f"after {len(filling.answered):,} pushes of 4 KiB; /readyz: {cause}")
    start_fails(gateway, verdicts, "full", "journal.sqlite")
    disk.remount(f"size={MEGABYTES_AFTER}m")
    if run.start():
        await filling.compare(run.load())
        await run.audit()
        await run.settle()
        run.tell()
    gateway.end(15)


def start_fails(gateway: ServedGateway, verdicts: Verdicts, why: str, file: str) -> None:
    """Checks that the start ends with 1 and a message with the file and the remedy."""
    name = f"the start ends with 1, names the file and a remedy: {why}"
    try:
        gateway.start()
        gateway.end(9)
        verdicts.check(name, False, "it started")
    except StartFailed as failure:
        remedy = next(word for start, word in REMEDIES.items() if why.startswith(start))
        holds = failure.status == 1 and file in failure.errors and remedy in failure.errors
        verdicts.check(name, holds, str(failure))
        verdicts.note(name, f"it says: {failure.errors.strip().splitlines()[-1] if failure.errors.strip() else ''}")


def starts(gateway: ServedGateway, verdicts: Verdicts, disk: MemoryFolder) -> None:
    """Tries disks on which a gateway must not start."""
    disk.remount("ro")
    start_fails(gateway, verdicts, "read-only", gateway.state)
    disk.remount("rw")
    shutil.rmtree(gateway.state)
    disks.fill(disk.mount_point)
    start_fails(gateway, verdicts, "full from the beginning", gateway.state)


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    if os.geteuid() != 0:
        verdicts.skip("full", "mounting a tmpfs needs root")
        return verdicts
    with tempfile.TemporaryDirectory(prefix="wakegate-full.") as folder:
        try:
            disk = MemoryFolder(folder)
        except subprocess.CalledProcessError as error:
            verdicts.skip("full", f"this machine mounts no tmpfs: {error}")
            return verdicts
        settings = {**driver.SETTINGS, "registration": "open"}
        with disk, ServedGateway(program, folder, settings, state=os.path.join(disk.mount_point, "state")) as gateway:
            asyncio.run(fill(gateway, disk, verdicts, options.seed))
            starts(gateway, verdicts, disk)
    return verdicts
