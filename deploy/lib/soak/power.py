"""Power loss, simulated as closely as possible: the file system is shut down under the running gateway."""

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import tempfile

from crash import driver, ways
from crash.load import Load
from shared import processes
from shared.served_gateway import ServedGateway
from shared.verdicts import Verdicts
from soak.disks import LoopFolder

DEVICES = 200
LOSSY_ROUNDS_MAX = 8
WITHOUT_SYNC = {"LD_PRELOAD": "libeatmydata.so"}


def is_stopped(process: int) -> bool:
    """Returns true if every thread of a process is stopped, so that every system call has ended."""
    threads = os.listdir(f"/proc/{process}/task")
    return all(processes.statistics(f"{process}/task/{thread}")[0] == "T" for thread in threads)


class PowerLosses(driver.Crashes):
    """Every end is a loss of the disk under load, and of the process shortly afterwards."""

    starting_kills = 0.0
    shutdown_share = 0.0
    # A loss of power must not lose older data, so all pushes are looked up.
    ways_again_max = None

    def __init__(self, program: str, folder: str, disk: LoopFolder, verdicts: Verdicts, seed: int):
        gateway = ServedGateway(program, folder, driver.SETTINGS, state=os.path.join(disk.mount_point, "state"))
        super().__init__(gateway, DEVICES, verdicts, seed)
        self.disk = disk

    async def end(self, load: Load) -> None:
        """Stops the process between two system calls, removes the disk, and lets the process notice for a moment.

        ext4 reports success for an fdatasync that is in progress at the shutdown, and loses its data: an fdatasync that
        waits for a transaction finds it gone, and treats this as completion (a loop of write and fdatasync shows the
        same). No disk does this at a power loss, so no fdatasync may be in progress.
        """
        load.is_failing = load.is_disk_gone = True
        self.gateway.process.send_signal(signal.SIGSTOP)
        while not is_stopped(self.gateway.pid):
            await asyncio.sleep(0)
        self.disk.shut_down()
        if self.source.random() < 0.7:
            self.gateway.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(self.source.random() * 0.2)
        self.gateway.process.kill()

    def between(self) -> None:
        self.disk.mount_again()


async def rounds(run: PowerLosses, count: int) -> None:
    try:
        await run.begin()
        while run.kills < count and await run.round(by_time=True):
            pass
        if run.books_agree:
            await run.settle()
    finally:
        run.gateway.end(9)


async def rounds_without_sync(run: PowerLosses, verdicts: Verdicts, file_system: str) -> None:
    """Runs the same with syncing switched off, which must lose pushes."""
    name = f"{file_system}: the same without syncing loses what was answered, so these rounds prove something"
    try:
        await run.begin()
        while run.books_agree and run.kills < LOSSY_ROUNDS_MAX:
            run.environment = WITHOUT_SYNC
            run.gateway.end(9)
            if not run.start():
                break
            # Only the run before the loss has no syncs. After it, the gateway runs normally.
            run.environment = {}
            await run.round(by_time=True)
    finally:
        run.gateway.end(9)
    lost = [
        f"{check}: {details[0]}" for check, details in run.verdicts.failures.items()
        if ("200" in check or "starts" in check) and check not in ways.NAMES
    ]  # fmt: skip
    verdicts.check(name, bool(lost), f"{run.kills} losses of power lost nothing")
    verdicts.note(name, f"{run.kills} losses of power until it did; {'; '.join(lost)}")


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    missing = [tool for tool in ("mkfs.ext4", "mkfs.xfs", "xfs_io") if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        verdicts.skip("power", f"needs root and {', '.join(missing) or 'nothing else'}")
        return verdicts
    on_ext4 = (options.losses + 1) // 2
    on_file_system(program, "ext4", on_ext4, options, verdicts)
    on_file_system(program, "xfs", options.losses - on_ext4, options, verdicts)
    return verdicts


def on_file_system(program: str, file_system: str, count: int, options: argparse.Namespace, verdicts: Verdicts) -> None:
    """Runs this number of losses on a file system, and some with syncing switched off."""
    for is_synced in (True, False):
        with tempfile.TemporaryDirectory(prefix="wakegate-power.") as folder:
            try:
                disk = LoopFolder(folder, file_system)
            except subprocess.CalledProcessError as error:
                verdicts.skip(f"power on {file_system}", f"this machine mounts no such image: {error}")
                return
            with disk:
                of_its_own = Verdicts()
                run = PowerLosses(program, folder, disk, of_its_own, options.seed)
                if not is_synced:
                    asyncio.run(rounds_without_sync(run, verdicts, file_system))
                    continue
                asyncio.run(rounds(run, count))
                of_its_own.equal("as many losses of power as were asked for", "losses", run.kills, count)
                run.tell()
                verdicts.add(of_its_own, file_system)
