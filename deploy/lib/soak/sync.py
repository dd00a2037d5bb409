"""A sync that fails, on the real process: strace answers the n-th one with EIO."""

import argparse
import asyncio
import os
import random
import re
import shutil
import tempfile

from crash import driver
from crash.ledger import Ledger
from crash.load import Sizes
from shared.served_gateway import ServedGateway
from shared.verdicts import Verdicts
from soak import failing_gateway

DEVICES = 80
# Of every thread that syncs, the n-th sync fails, once: a later one would succeed, and prove nothing.
RUNNING = (2, 3, 5, 9, 20, 45, 100, 200)
STARTING_MAX = 12
CALLS = "fdatasync,fsync,write,pwrite64,writev,pwritev,ftruncate,fallocate,unlink,rename"
WRITES = re.compile(r"\b(?:write|pwrite64|writev|pwritev|ftruncate|fallocate|fdatasync|fsync|unlink|rename)\(")


def tracing(log: str, paths: list[str], number: int, calls: str = "fdatasync,fsync") -> list[str]:
    """A prefix under which the n-th of these calls fails that a thread makes on these files. The process stays ours."""
    words = [word for path in paths for word in ("-P", path)]
    return [
        "strace", "-D", "-f", "-qq", "-y", "-o", log, "-e", "signal=none", *words, "-e", f"trace={CALLS}",
        "-e", f"inject={calls}:error=EIO:when={number}",
    ]  # fmt: skip


def database(state: str, name: str) -> list[str]:
    """The files of one database: its own, and its log."""
    return [os.path.join(state, f"{name}.sqlite{end}") for end in ("", "-wal")]


def injected(log: str) -> list[int]:
    """The lines of the log where a sync failed."""
    with open(log, encoding="utf-8", errors="replace") as file:
        return [number for number, line in enumerate(file) if "(INJECTED)" in line]


def written_after(log: str, start: int) -> list[str]:
    """What was done to the journal's files after a line of the log; what had begun before it may still end."""
    with open(log, encoding="utf-8", errors="replace") as file:
        lines = list(file)[start + 1 :]
    return [line.strip() for line in lines if WRITES.search(line) and "resumed>" not in line and "-shm>" not in line]


class SyncFailures(driver.Crashes):
    """Every end is a failed sync under load; then the rules are compared, and the process is killed."""

    starting_kills = 0.0
    log = ""

    async def fail_once(self, number: int) -> bool | None:
        """Starts under strace, works until the sync fails, and compares; none when nothing ever failed."""
        self.gateway.end(9)
        log = self.log = os.path.join(self.gateway.folder, f"strace.{number}")
        self.prefix = tracing(log, database(self.gateway.state, "journal"), number)
        is_started = self.start_or_explain(number)
        self.prefix = []
        if is_started:
            load = self.load()
            load.is_failing = True
            running = asyncio.create_task(load.run())
            if not await failing_gateway.until_failed(load):
                await load.stop()
                await running
                await self.audit(is_restart=False)
                return None
            cause = await failing_gateway.look(load, self.gateway.state)
            self.verdicts.note("a gateway whose disk failed is alive, not ready, and says why", f"/readyz: {cause}")
            self.gateway.end(9)
            await running
            name = "after a failed sync nothing more is written to the journal"
            lines = injected(log)
            self.verdicts.check(name, bool(lines), f"sync {number} did not fail")
            after = written_after(log, lines[0]) if lines else []
            self.verdicts.check(name, not after, f"after failing sync {number}: {after[:3]}")
            self.kills += 1
        if not self.start():
            return False
        await self.audit()
        return self.books_agree

    def start_or_explain(self, number: int) -> bool:
        """Whether the gateway starts; when it does not, it must end with 1 and name the file."""
        try:
            self.gateway.start(self.prefix)
            return True
        except driver.StartFailed as failure:
            name = "a sync that fails at the start ends it with 1, and the message names the file"
            names_file = self.gateway.state in failure.errors
            self.verdicts.check(name, failure.status == 1 and names_file, f"sync {number}: {failure}")
            self.verdicts.note(name, f"the last says: {failure.errors.strip()}")
            return False


async def run(program: str, folder: str, verdicts: Verdicts, seed: int) -> None:
    gateway = ServedGateway(program, folder, driver.SETTINGS)
    failures = SyncFailures(gateway, Ledger(DEVICES * 3 // 4, DEVICES // 4), verdicts, random.Random(seed), Sizes())
    try:
        # On an empty folder first: every sync of the making of the files.
        for number in range(1, STARTING_MAX + 1):
            shutil.rmtree(gateway.state, ignore_errors=True)
            failures.prefix = tracing(os.path.join(folder, "strace"), database(gateway.state, "journal"), number)
            if failures.start_or_explain(number):
                break
            gateway.end(9)
        gateway.end(9)
        # The names of new files must be durable, too. (SQLite syncs the folder with fdatasync, and passes over errors;
        # the journal syncs it with fsync.)
        shutil.rmtree(gateway.state, ignore_errors=True)
        failures.prefix = tracing(os.path.join(folder, "strace"), [gateway.state], 1, "fsync")
        started = failures.start_or_explain(1)
        verdicts.check("a folder that cannot be synced ends the start", not started, "it started")
        gateway.end(9)
        shutil.rmtree(gateway.state, ignore_errors=True)
        failures.prefix = []
        await failures.begin()
        for number in RUNNING:
            if await failures.fail_once(number) is False:
                return
        verdicts.check("syncs failed under load", failures.kills >= 4, f"only {failures.kills} did")
        await history(failures)
        await failures.settle()
        failures.tell()
    finally:
        gateway.end(9)


async def history(failures: SyncFailures) -> None:
    """A history that cannot be written touches no push: every request is answered as ever."""
    failures.gateway.end(9)
    log = os.path.join(failures.gateway.folder, "strace.history")
    failures.prefix = tracing(log, database(failures.gateway.state, "history"), 1, "fdatasync,fsync,pwrite64")
    failures.start()
    failures.prefix = []
    await failures.round(by_time=False)
    name = "a history that cannot be written touches no push"
    if os.path.exists(log) and injected(log):
        failures.verdicts.check(name, failures.verdicts.passed, "see the other checks")
    else:
        failures.verdicts.skip(name, "the history wrote nothing in that time")


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    if not shutil.which("strace"):
        verdicts.skip("sync", "strace is not installed")
        return verdicts
    with tempfile.TemporaryDirectory(prefix="wakegate-sync.") as folder:
        asyncio.run(run(program, folder, verdicts, options.seed))
    return verdicts
