"""Power loss, as near as one machine comes to it: the file system is shut down under the running gateway."""

import argparse
import asyncio
import glob
import os
import random
import shutil
import signal
import subprocess
import tempfile

import crash
from crash_ledger import Ledger
from crash_load import Load, Sizes
from served_gateway import ServedGateway
from verdicts import Verdicts

IMAGE_MEGABYTES = 512
DEVICES = 200
LOSSY_ROUNDS_MAX = 8
WITHOUT_SYNC = {"LD_PRELOAD": "libeatmydata.so"}


class LoopFolder:
    """An ext4 of its own in a file, mounted; unmounted and gone when the block is left."""

    def __init__(self, folder: str):
        self.image, self.mount_point = os.path.join(folder, "image"), os.path.join(folder, "mount")

    def __enter__(self) -> "LoopFolder":
        subprocess.run(["truncate", f"--size={IMAGE_MEGABYTES}M", self.image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)
        os.mkdir(self.mount_point)
        self.mount()
        return self

    def __exit__(self, *_: object) -> None:
        if os.path.ismount(self.mount_point):
            subprocess.run(["umount", "--lazy", self.mount_point], check=False)

    def mount(self) -> None:
        # Nothing reaches the image by the journal's own clock, only what is synced.
        subprocess.run(["mount", "-o", "loop,commit=300", self.image, self.mount_point], check=True)

    def shut_down(self) -> None:
        """Without -f nothing is flushed: every page that was not synced is gone."""
        subprocess.run(["xfs_io", "-x", "-c", "shutdown", self.mount_point], check=True)

    def mount_again(self) -> None:
        subprocess.run(["umount", self.mount_point], check=True)
        self.mount()


class PowerLosses(crash.Crashes):
    """Every end is a loss of the disk under load, and of the process a little later."""

    starting_kills = 0.0
    shutdown_share = 0.0
    disk: LoopFolder

    async def end(self, load: Load) -> None:
        """Stops the process between two system calls, takes the disk away, and lets it meet that for a moment.

        ext4 answers an fdatasync that is under way while it is shut down with success, and loses it: one that waits for
        a transaction finds it gone, and takes that for done (a bare write and fdatasync in a loop show the same). No
        disk does that when its power goes, so none may be under way.
        """
        load.is_failing = load.is_disk_gone = True
        self.gateway.process.send_signal(signal.SIGSTOP)
        while not self.is_stopped():
            await asyncio.sleep(0)
        self.disk.shut_down()
        if self.source.random() < 0.7:
            self.gateway.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(self.source.random() * 0.2)
        self.gateway.process.kill()

    def is_stopped(self) -> bool:
        """Whether every thread stands still: a system call that was under way has ended then."""
        for status in glob.glob(f"/proc/{self.gateway.pid}/task/*/stat"):
            with open(status, encoding="ascii", errors="replace") as file:
                if file.read().rpartition(")")[2].split()[0] != "T":
                    return False
        return True

    def between(self) -> None:
        self.disk.mount_again()


def losses(program: str, folder: str, disk: LoopFolder, verdicts: Verdicts, seed: int) -> PowerLosses:
    gateway = ServedGateway(program, folder, crash.SETTINGS, state=os.path.join(disk.mount_point, "state"))
    ledger = Ledger(DEVICES * 3 // 4, DEVICES // 4)
    run = PowerLosses(gateway, ledger, verdicts, random.Random(seed), Sizes())
    run.disk = disk
    return run


async def rounds(run: PowerLosses, count: int) -> None:
    try:
        await run.begin()
        while run.kills < count and await run.round(by_time=True):
            pass
        if run.verdicts.passed:
            await run.settle()
    finally:
        run.gateway.end(9)


async def rounds_without_sync(run: PowerLosses, verdicts: Verdicts) -> None:
    """The same with syncing switched off, which must lose pushes."""
    name = "the same without syncing loses what was answered, so these rounds prove something"
    try:
        await run.begin()
        while run.verdicts.passed and run.kills < LOSSY_ROUNDS_MAX:
            run.environment = WITHOUT_SYNC
            run.gateway.end(9)
            if not run.start():
                break
            # Only the run before the loss goes without; what starts on the rest is the gateway as it is.
            run.environment = {}
            await run.round(by_time=True)
    finally:
        run.gateway.end(9)
    lost = [
        f"{name}: {details[0]}" for name, details in run.verdicts.failures.items() if "200" in name or "starts" in name
    ]
    verdicts.check(name, bool(lost), f"{run.kills} losses of power lost nothing")
    verdicts.note(name, f"{run.kills} losses of power until it did; {'; '.join(lost)}")


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    missing = [tool for tool in ("mkfs.ext4", "xfs_io") if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        verdicts.skip("power", f"needs root and {', '.join(missing) or 'nothing else'}")
        return verdicts
    count = max(10, options.kills // 4)
    for is_synced in (True, False):
        with tempfile.TemporaryDirectory(prefix="wakegate-power.") as folder:
            try:
                disk = LoopFolder(folder).__enter__()
            except subprocess.CalledProcessError as error:
                verdicts.skip("power", f"this machine mounts no image: {error}")
                return verdicts
            try:
                if is_synced:
                    run = losses(program, folder, disk, verdicts, options.seed)
                    asyncio.run(rounds(run, count))
                    verdicts.equal("as many losses of power as were asked for", "losses", run.kills, count)
                    print(f"      {run.summary()}")
                else:
                    run = losses(program, folder, disk, Verdicts(), options.seed)
                    asyncio.run(rounds_without_sync(run, verdicts))
            finally:
                disk.__exit__()
    return verdicts
