"""Three gateways on one PostgreSQL whose commits wait for a standby, under load, with failures of every part: gateways
are killed and frozen, primaries killed and replaced, connections cut and held, and the database is slow, restarted and
full.

Each push that was answered 200 must be in the counters at the end, the counters of all gateways must balance in every
answer, and no device may be woken twice within an interval, or by two gateways for one wake.
"""

import argparse
import asyncio
import contextlib
import glob
import os
import random
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable

from cluster import postgres
from cluster.gateways import Gateways
from cluster.judge import Judge
from cluster.ledger import Ledger
from cluster.load import Load
from cluster.proxy import ProxyProcess
from shared.processes import StartFailed
from shared.verdicts import Verdicts
from soak import disks

GATEWAYS, STANDBYS = 3, 2
LANES = 96
# The maximum time for which pushes may be refused or unanswered after a fault. After it, the run is given up.
OUTAGE_SECONDS_MAX = 60
PROMOTION_AIM_SECONDS = 5
FROZEN_SECONDS, SLOW_SECONDS, HELD_SECONDS = 20, 15, 6
COMMIT_SECONDS = 1.0
FULL_SECONDS, FULL_PUSHES = 10, 4000
RETURNS = "pushes are answered 200 again after each fault"
PLAYED = "gateways and servers come back from every fault"
STARTS = "gateways start again after each end"
ENOUGH = "as many pushes were acknowledged as were asked for"
AIM = f"pushes are answered within {PROMOTION_AIM_SECONDS} s after each promotion"


class Scene:
    """A database, its gateways, and a load."""

    def __init__(self, load: Load, gateways: Gateways, database: postgres.Database, proxy: ProxyProcess, seed: int):
        self.load, self.gateways, self.database, self.proxy = load, gateways, database, proxy
        self.verdicts, self.source = load.verdicts, random.Random(seed)
        # For each kind of fault, the times without an answer 200 to any push after each fault.
        self.outages: dict[str, list[float]] = {}

    async def breathe(self, least: float, most: float) -> None:
        """Lets all clients work for a random time between these seconds."""
        await asyncio.sleep(self.source.uniform(least, most))
        self.load.check_running()

    async def outage(self, kind: str, since: float, by: int | None = None) -> float | None:
        """Waits for the first answer 200 to a push that was sent after `since`, from any gateway or from one
        gateway."""
        deadline = time.monotonic() + OUTAGE_SECONDS_MAX
        while (took := self.load.ledger.first_after(since, by)) is None and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        self.load.check_running()
        self.verdicts.check(RETURNS, took is not None, f"{kind}: none within {OUTAGE_SECONDS_MAX} s")
        if took is not None:
            self.outages.setdefault(kind, []).append(took)
        return took

    async def start(self, number: int) -> None:
        gateway = self.gateways.all[number]
        try:
            await asyncio.to_thread(gateway.start)
            self.verdicts.check(STARTS, True, "")
        except StartFailed as failure:
            self.verdicts.check(STARTS, False, f"gateway {number}: {failure}")
            # The reason for a refused start may end soon, for example a database that is changing its primary.
            await asyncio.sleep(1)
            await asyncio.to_thread(gateway.start)

    # MARK: Faults

    async def kill_gateways(self, count: int) -> None:
        """Kills one gateway after another, at random times; every fifth time two at once."""
        done = 0
        while done < count:
            await self.breathe(0.3, 1.5)
            first = self.source.randrange(GATEWAYS)
            killed = [first] if self.source.random() < 0.8 or done + 1 == count else [first, (first + 1) % GATEWAYS]
            since = time.monotonic()
            for number in killed:
                self.gateways.all[number].end(signal.SIGKILL)
            done += len(killed)
            await self.outage("kill of a gateway, from any", since)
            for number in killed:
                await self.start(number)
                await self.outage("kill of a gateway, from itself", since, by=number)

    async def promote(self, count: int) -> None:
        """Kills the primary, and promotes the standby that has most of its log."""
        for _ in range(count):
            await self.breathe(1, 4)
            since = time.monotonic()
            await asyncio.to_thread(self.database.primary.kill)
            self.outages.setdefault("end of all its processes, part of that", []).append(time.monotonic() - since)
            killed = time.monotonic()
            await asyncio.to_thread(self.database.promote_most_advanced)
            promoted = time.monotonic()
            self.outages.setdefault("PostgreSQL's own promotion, part of that", []).append(promoted - killed)
            took = await self.outage("kill of the primary, with the promotion", since)
            if took is not None:
                after = max(0, since + took - promoted)
                self.outages.setdefault("from the promotion to the first answer, the rest", []).append(after)
                self.verdicts.check(AIM, after <= PROMOTION_AIM_SECONDS, f"one took {after:.1f} s")
            await asyncio.to_thread(self.database.bring_back)

    async def freeze_gateways(self, count: int) -> None:
        for _ in range(count):
            await self.breathe(1, 2)
            number = self.source.randrange(GATEWAYS)
            since = time.monotonic()
            pid = self.gateways.all[number].pid
            os.kill(pid, signal.SIGSTOP)
            try:
                await self.outage("stop of a gateway, from any", since)
                await asyncio.sleep(FROZEN_SECONDS)
            finally:
                os.kill(pid, signal.SIGCONT)
            await self.outage("stop of a gateway, from itself after it continues", time.monotonic(), by=number)

    async def cut_connections(self, count: int) -> None:
        """Resets all connections of a gateway to the database, or holds their data for some time."""
        for place in range(count):
            await self.breathe(0.5, 2)
            number, since = self.source.randrange(GATEWAYS), time.monotonic()
            if place % 3 < 2:
                self.proxy.tell(do="cut", gateway=number)
                await self.outage("cut connections, from the gateway cut off", since, by=number)
            else:
                self.proxy.tell(do="hold", gateway=number, on=True)
                await asyncio.sleep(HELD_SECONDS)
                self.proxy.tell(do="hold", gateway=number, on=False)
                kind = f"connections held up for {HELD_SECONDS} s, from the gateway behind"
                await self.outage(kind, time.monotonic(), by=number)

    async def slow_down(self, count: int) -> None:
        for _ in range(count):
            await self.breathe(1, 2)
            since = time.monotonic()
            self.proxy.tell(do="slow", seconds=COMMIT_SECONDS)
            await self.outage("a second a commit", since)
            await asyncio.sleep(SLOW_SECONDS)
            self.proxy.tell(do="slow", seconds=0)
            await self.outage("the end of slow commits", time.monotonic())

    async def restart(self, count: int) -> None:
        for _ in range(count):
            await self.breathe(1, 2)
            since = time.monotonic()
            await asyncio.to_thread(self.database.primary.stop)
            await asyncio.to_thread(self.database.primary.start)
            await self.outage("restart of the primary", since)
            await asyncio.to_thread(self.database.wait_for_standbys)

    async def fill(self, folder: str) -> None:
        """Fills the database's disk for some time."""
        node = self.database.primary
        await self.breathe(2, 3)
        since = time.monotonic()
        filler = await asyncio.to_thread(disks.fill, folder)
        refused = dict(self.load.ledger.refused)
        await asyncio.sleep(FULL_SECONDS)
        # Overwriting data needs no space. The full disk has an effect only if more pushes are refused than before.
        self.verdicts.check("a full disk is met", self.load.ledger.refused != refused, "no push was refused")
        os.unlink(filler)
        freed = time.monotonic()
        if not node.is_running():
            await asyncio.to_thread(node.start)
        self.verdicts.note("a full disk is met", f"the server {'kept running' if node.is_running() else 'ended'}")
        await self.outage("a full disk, from the moment there is room", freed)
        self.outages["a full disk, from the beginning"] = [freed - since + self.outages[
            "a full disk, from the moment there is room"][-1]]  # fmt: skip

    async def push_until(self, acknowledged: int) -> None:
        deadline = time.monotonic() + OUTAGE_SECONDS_MAX + 3 * acknowledged / self.load.rate
        while self.load.ledger.count < acknowledged and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
            self.load.check_running()

    def tell(self) -> None:
        for kind, seconds in self.outages.items():
            print(f"      {kind}: {len(seconds)} times, p50 {statistics.median(seconds):.2f} s, "
                  f"most {max(seconds):.2f} s", flush=True)  # fmt: skip


Faults = Callable[[Scene], Awaitable[None]]


async def play(
    program: str, options: argparse.Namespace, folder: str, database: postgres.Database, verdicts: Verdicts,
    faults: Faults, acknowledged: int,
) -> None:  # fmt: skip
    """Runs the load and the failures, then waits without load, and checks the result."""
    ports = [node.port for node in database.nodes]
    source = random.Random(options.seed)
    with ProxyProcess(folder, GATEWAYS, ports) as proxy, \
            Gateways(program, folder, [database.address(ports) for ports in proxy.ports]) as gateways:  # fmt: skip
        gateways.start()
        ledger = Ledger(options.devices, source)
        load = Load(gateways, database, ledger, verdicts, options.seed, options.pushes_a_second, LANES)
        scene = Scene(load, gateways, database, proxy, options.seed)
        load.start()
        try:
            await scene.outage("start", time.monotonic())
            try:
                await faults(scene)
                verdicts.check(PLAYED, True, "")
            except (postgres.PostgresFault, StartFailed, AssertionError) as error:
                verdicts.check(PLAYED, False, repr(error))
            await scene.push_until(acknowledged)
            await load.stop_pushing()
            await Judge(load, options.ways, source).run()
        except BaseException:
            keep_logs(folder)
            raise
        scene.tell()
        verdicts.check(ENOUGH, ledger.count >= acknowledged, f"{ledger.count:,} of {acknowledged:,}")
        for name, details in verdicts.failures.items():
            print(f"      failed: {name}: {details[0]}", flush=True)
        if verdicts.failures:
            keep_logs(folder)


def keep_logs(folder: str) -> None:
    """Copies the logs of gateways and servers to a folder that remains after the run."""
    kept = tempfile.mkdtemp(prefix="wakegate-cluster-logs.")
    for path in (*glob.glob(f"{folder}/**/gateway.log", recursive=True), *glob.glob(f"{folder}/**/log", recursive=True)):
        with contextlib.suppress(OSError):
            shutil.copy(path, os.path.join(kept, f"{os.path.basename(os.path.dirname(path))}.log"))
    print(f"      the logs are in {kept}", flush=True)


async def everything(scene: Scene, options: argparse.Namespace) -> None:
    for kind, fault, count in (
        ("kills of gateways", scene.kill_gateways, options.kills),
        ("promotions", scene.promote, options.promotions),
        ("stops of gateways", scene.freeze_gateways, options.others),
        ("cuts", scene.cut_connections, 10 * options.others),
        ("slow commits", scene.slow_down, options.others),
        ("restarts", scene.restart, options.others),
    ):
        started = time.monotonic()
        await fault(count)
        print(f"      {count} {kind} in {time.monotonic() - started:.0f} s; "
              f"{scene.load.ledger.count:,} pushes acknowledged", flush=True)  # fmt: skip


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    # Other users than root must have access to its contents, because PostgreSQL runs as its own user.
    with tempfile.TemporaryDirectory(prefix="wakegate-cluster.") as folder:
        os.chmod(folder, 0o711)
        with postgres.Database(os.path.join(folder, "database"), STANDBYS, {}) as database:
            asyncio.run(
                play(program, options, folder, database, verdicts,
                     lambda scene: everything(scene, options), options.acknowledged)
            )  # fmt: skip
        verdicts.note(AIM, f"former primaries came back by pg_rewind {database.rewound} times, as a fresh copy "
                           f"{database.copied} times")  # fmt: skip
    full = Verdicts()
    if os.geteuid() != 0:
        verdicts.skip("full", "a disk of its own needs root")
        return verdicts
    with tempfile.TemporaryDirectory(prefix="wakegate-cluster.") as folder:
        os.chmod(folder, 0o711)
        with disks.LoopFolder(folder, "ext4") as disk:
            os.chmod(disk.mount_point, 0o755)
            place = os.path.join(disk.mount_point, "database")
            sizes = {"max_wal_size": "'64MB'", "min_wal_size": "'32MB'", "wal_keep_size": 0, "shared_buffers": "'32MB'"}
            with postgres.Database(place, 0, sizes) as database:
                asyncio.run(
                    play(program, options, folder, database, full, lambda scene: scene.fill(disk.mount_point), FULL_PUSHES)
                )
    verdicts.add(full, "full")
    return verdicts
