"""Disks that are full, read-only or hold something else: a 64 MB tmpfs, and files damaged on purpose."""

import argparse
import asyncio
import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable

from clients import admin_reader
from clients.h2_client import Client
from crash import driver
from crash.ledger import Ledger
from crash.load import Load, Sizes
from shared.served_gateway import ServedGateway, StartFailed
from shared.verdicts import Verdicts
from soak import failing_gateway

MEGABYTES, MEGABYTES_AFTER = 64, 256
LANES = 32
TOPIC = "com.example.full"
DEVICES = 40
# A word of the remedy, by how the case's name begins.
REMEDIES = {
    "full": "ree space", "read-only": "writable", "damaged": "backup", "newer": "Install", "other program": "move",
    "in use": "stop it",
}  # fmt: skip


class MemoryFolder:
    """A tmpfs of 64 MB; unmounted when the block is left."""

    def __init__(self, folder: str):
        self.mount_point = os.path.join(folder, "mount")

    def __enter__(self) -> "MemoryFolder":
        os.mkdir(self.mount_point)
        options = ["-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", self.mount_point]
        subprocess.run(["mount", *options], check=True)
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "--lazy", self.mount_point], check=False)

    def remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", self.mount_point], check=True)

    def fill(self) -> str:
        """Takes all room that is left; the file that took it."""
        path = os.path.join(self.mount_point, "filler")
        with open(path, "wb", buffering=0) as file:
            try:
                while file.write(b"\0" * 65536):
                    pass
            except OSError:
                pass
        return path


class Filling:
    """Pushes of 4 KiB to ever new devices, until the disk is full."""

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
        """Every push that was answered 200 waits on its device."""
        admin = await load.connect(load.addresses.admin, None)
        room = asyncio.Semaphore(64)
        name = "every push answered before the disk was full is there after it was given room, and its way told"

        async def explain(token: str, apns_id: str) -> None:
            async with room:
                response = await admin.request("GET", f"/v1/devices/{token}")
            pending = response.json().get("pending") if response.status == 200 else None
            load.verdicts.equal(name, f"pending of {token}", pending and pending["apnsID"], apns_id)

        await asyncio.gather(*(explain(*pair) for pair in self.answered))
        paths = [f"/v1/pushes/{apns_id}" for _, apns_id in self.answered]
        ways = await admin_reader.read_all(load.addresses.admin, paths)
        for (_, apns_id), (status, way) in zip(self.answered, ways, strict=True):
            found = (status, way.get("state"), [step["event"] for step in way.get("events", [])])
            load.verdicts.equal(name, f"way of {apns_id}", found, (200, "pending", ["received"]))
        stats = (await admin.request("GET", f"/v1/stats/topics/{TOPIC}")).json()
        load.verdicts.within(name, "accepted", stats["pushes"]["accepted"], len(self.answered), self.number)
        await admin.close()


async def fill(gateway: ServedGateway, disk: MemoryFolder, verdicts: Verdicts, seed: int) -> None:
    """Until 503; then the rules; then more room, a restart, and everything there."""
    run = driver.Crashes(gateway, Ledger(DEVICES, DEVICES), verdicts, random.Random(seed), Sizes())
    await run.begin()
    load = run.load()
    load.is_failing = True
    everybody = asyncio.create_task(load.run())
    filling = Filling(load)
    await filling.run()
    cause = await failing_gateway.look(load, gateway.state, (len(filling.answered), filling.number))
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
    """The start must end with 1 and a message that names the file and what to do."""
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
    """Disks and files a gateway must not start on, and must not touch."""
    journal = os.path.join(gateway.state, "journal.sqlite")
    fold_log(journal)
    with open(journal, "rb") as file:
        whole = file.read()
    disk.remount("ro")
    start_fails(gateway, verdicts, "read-only", gateway.state)
    disk.remount("rw")

    middle = len(whole) // 2
    cases: dict[str, Callable[[], None]] = {
        "damaged": lambda: write(journal, with_damaged_row(whole, inner_bytes(journal))),
        "damaged, its first page": lambda: write(journal, whole[:100] + bytes(8000) + whole[8100:]),
        "damaged, cut short": lambda: write(journal, whole[:middle]),
        "damaged, without its last page": lambda: write(journal, whole[:-16384]),
        "damaged, a row missing": lambda: without_row(journal, whole),
        "newer": lambda: newer(journal, whole),
        "other program": lambda: other_program(journal),
        "other program, no database": lambda: write(journal, b"Dear diary,\n" * 1000),
    }
    for why, prepare in cases.items():
        prepare()
        with open(journal, "rb") as file:
            before = file.read()
        start_fails(gateway, verdicts, why, journal)
        with open(journal, "rb") as file:
            verdicts.check("files that are refused are left as they are", file.read() == before, f"{why}: it changed")
    write(journal, whole)
    gateway.start()
    second = ServedGateway(gateway.command[0], gateway.folder, {}, state=gateway.state)
    start_fails(second, verdicts, "in use by another process", gateway.state)
    gateway.end(15)

    shutil.rmtree(gateway.state)
    disk.fill()
    start_fails(gateway, verdicts, "full from the beginning", gateway.state)


def fold_log(path: str) -> None:
    """Moves everything from the log into the file, so that there is one place to damage."""
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def write(path: str, content: bytes) -> None:
    """Replaces the file, and takes its log away."""
    for suffix in ("-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.unlink(path + suffix)
    with open(path, "wb") as file:
        file.write(content)


def inner_bytes(path: str) -> bytes:
    """Some bytes of the row in the middle, which lie together in the file."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        rows = database.execute("SELECT content FROM rows WHERE id = (SELECT (min(id) + max(id)) / 2 FROM rows)")
        return rows.fetchone()[0][100:132]


def with_damaged_row(whole: bytes, inner: bytes) -> bytes:
    """A bit of these bytes changed wherever they lie: pages that nothing reads any more may hold them, too."""
    return whole.replace(inner, bytes([inner[0] ^ 1]) + inner[1:])


def without_row(path: str, whole: bytes) -> None:
    write(path, whole)
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM rows WHERE id = (SELECT (min(id) + max(id)) / 2 FROM rows)")
    database.close()
    fold_log(path)


def newer(path: str, whole: bytes) -> None:
    write(path, whole)
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    fold_log(path)


def other_program(path: str) -> None:
    write(path, b"")
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA application_id = 77")
        database.execute("CREATE TABLE recipes(name)")
    database.close()


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    if os.geteuid() != 0:
        verdicts.skip("full", "mounting a tmpfs needs root")
        return verdicts
    with tempfile.TemporaryDirectory(prefix="wakegate-full.") as folder:
        try:
            disk = MemoryFolder(folder).__enter__()
        except subprocess.CalledProcessError as error:
            verdicts.skip("full", f"this machine mounts no tmpfs: {error}")
            return verdicts
        settings = {**driver.SETTINGS, "registration": "open"}
        gateway = ServedGateway(program, folder, settings, state=os.path.join(disk.mount_point, "state"))
        try:
            asyncio.run(fill(gateway, disk, verdicts, options.seed))
            starts(gateway, verdicts, disk)
        finally:
            gateway.end(9)
            disk.__exit__()
    return verdicts
