"""Starts with files that are damaged, cut, swapped or missing: everything exists, or the start names what is missing.

deploy/soak and, in a short form, the test command call it.
"""

import argparse
import asyncio
import collections
import hashlib
import os
import random
import re
import shutil
import signal
import stat
import tempfile
from dataclasses import dataclass

from crash import ledger
from shared import processes, trial, waiting
from shared.verdicts import Verdicts
from soak import damage_catalogue
from soak.damage_scene import WAITING, Known, Scene, SceneBuilder, ask

AT_ONCE = 3
# One start in this many runs `serve --check` first.
CHECK_EVERY = 10
# The maximum time for a start or an answer, on a machine that also does other work.
HANG_SECONDS = 40
WARNING_SECONDS = 3
# The maximum length of a shown message of a gateway, and the maximum number of different messages.
SAID_MAX, SAID_KINDS_MAX = 300, 50
# Words that the messages of refused starts must contain.
REMEDIES = re.compile(
    r"backup|--accept-loss|move |Install|chmod|put (back|one)|replace the|restore|remove|check|Use a|make it|see to",
    re.IGNORECASE,
)
EXACT, REFUSED, SET_ASIDE = "exact", "refused by name", "set aside with a warning"
# The outcomes that must not happen, and the checks that find them.
SILENT, DIED, HUNG, UNCLEAR = "silently lost", "ended by a signal", "hung", "refused without name, remedy or care"
CHECKS = {
    SILENT: "a damaged start that comes up has every push, and says so of ways that it lost",
    DIED: "no damage ends a start, or a gateway that came up on it, with a signal",
    HUNG: "no damage makes a start hang",
    UNCLEAR: "a refused start ends with 1, names file and remedy, and leaves every file unchanged",
}


@dataclass
class Outcome:
    word: str
    # The broken promise, or the message of the gateway.
    said: str = ""


class Damages:
    """Any number of damaged starts, each determined by its number and the seed alone."""

    def __init__(self, command: list[str], folder: str, scenes: list[Scene], options: argparse.Namespace):
        """`command` starts the gateway; each start adds the state folder."""
        self.command, self.folder, self.scenes, self.options = command, folder, scenes, options

    async def learn(self) -> None:
        """Reads the state of an undamaged start twice; values that differ between two such starts cannot be
        compared."""
        for scene in self.scenes:
            known = [await self.know(scene) for _ in range(2)]
            if known[0] != known[1] or not all(known[0].ways.values()) and scene.has_history:
                what = difference(*known) or "lack ways of pushes, or tell them differently"
                raise SystemExit(f"two starts on the undamaged state {scene.name} differ: {what}")
            scene.known = known[0]

    async def know(self, scene: Scene) -> Known:
        start = Start(self, scene, "learn")
        try:
            if not await start.comes_up():
                raise SystemExit(f"the undamaged state {scene.name} does not start: {start.said()}")
            return await ask(start.admin, scene)
        finally:
            await start.go()

    async def one(self, number: int) -> tuple[str, Outcome]:
        """Returns the damage, in words, and its outcome."""
        source = random.Random(f"{self.options.seed}:{number}")
        scene = self.scenes[number % len(self.scenes)]
        others = [other for other in self.scenes if other is not scene]
        start = Start(self, scene, str(number))
        try:
            place = damage_catalogue.Place(start.state, scene, others, source)
            done = f"state {scene.name}, {damage_catalogue.damage(place, self.options.seed, number // len(self.scenes))}"
            try:
                return done, await start.judge(with_check=number % CHECK_EVERY == 0)
            except TimeoutError:
                return done, Outcome(HUNG, f"no answer after {HANG_SECONDS} s: {start.said()}")
            except (OSError, asyncio.IncompleteReadError) as error:
                status = await asyncio.to_thread(start.wait)
                return done, Outcome(DIED, f"while it was asked: {error!r}; exit status {status}: {start.said()}")
        finally:
            await start.go()


class Start(processes.Program):
    """A start on a copy of a scene, which is deleted afterwards."""

    start_seconds = stop_seconds = HANG_SECONDS

    def __init__(self, damages: Damages, scene: Scene, name: str):
        self.damages, self.scene = damages, scene
        self.folder = os.path.join(damages.folder, f"start-{name}")
        self.state = os.path.join(self.folder, "state")
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(scene.state, self.state, symlinks=True)
        super().__init__([], os.path.join(self.folder, "errors"), self.folder)

    async def comes_up(self, *arguments: str) -> bool:
        """Returns true if it is running; otherwise it has ended."""
        self.command = [*self.damages.command, "--state", self.state, *arguments]
        try:
            await asyncio.to_thread(self.start)
        except processes.StartFailed as failure:
            if failure.status == -signal.SIGKILL:
                raise TimeoutError from None
            return False
        return True

    @property
    def admin(self) -> str:
        return self.ready["admin"]

    async def go(self) -> None:
        await asyncio.to_thread(self.end, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def said(self) -> str:
        return self.errors().strip().replace(self.state, "STATE")

    async def judge(self, with_check: bool) -> Outcome:
        """Judges the start. With `with_check`, `serve --check` first examines the state, which must end and change
        nothing."""
        before = fingerprint(self.state)
        is_journal_gone = not any(name.startswith(damage_catalogue.JOURNAL) for name in os.listdir(self.state))
        try:
            if with_check and (fault := await self.check(before)):
                return fault
            is_up = await self.comes_up()
        except TimeoutError:
            return Outcome(HUNG, f"neither ready nor ended after {HANG_SECONDS} s: {self.said()}")
        if not is_up:
            outcome = self.judge_refusal(before)
            return await self.judge_acceptance(outcome) if "--accept-loss" in outcome.said else outcome
        known = await asyncio.wait_for(ask(self.admin, self.scene), HANG_SECONDS)
        if is_journal_gone:
            return self.judge_beginning(known)
        lost = difference(self.scene.known, known)
        if lost:
            return Outcome(SILENT, f"it came up with {lost}; it said: {self.warnings() or 'nothing'}")
        untold = [name for name, way in self.scene.known.ways.items() if known.ways[name] != way]
        if not untold:
            return Outcome(EXACT, self.warnings())
        # The counters and devices are complete, but the histories of some pushes are not. A warning must report this.
        if await asyncio.to_thread(waiting.until, lambda: "history" in self.warnings(), WARNING_SECONDS):
            return Outcome(SET_ASIDE, self.warnings())
        what = f"the way of {len(untold)} of {len(known.ways)} pushes is gone or another, without a warning"
        return Outcome(SILENT, f"{what}: of {untold[0]} {known.ways[untold[0]]}, not {self.scene.known.ways[untold[0]]}")

    def judge_beginning(self, known: Known) -> Outcome:
        """Judges a start without the journal's files, which refusals recommend for a new beginning. With a history
        it is refused."""
        if self.scene.has_history:
            return Outcome(SILENT, "the journal is gone, and its history is taken for that of a new one")
        if known.books["pushes"]["accepted"] or any(known.devices.values()):
            return Outcome(SILENT, "a journal that is not there has pushes or devices")
        return Outcome(EXACT, self.warnings())

    async def check(self, before: dict[str, str]) -> Outcome | None:
        if await self.comes_up("--check"):
            return Outcome(UNCLEAR, "serve --check says that it is ready")
        status = self.process.returncode
        if status < 0:
            return Outcome(DIED, f"serve --check: {signal.Signals(-status).name}: {self.said()[-400:]}")
        if fingerprint(self.state) != before:
            return Outcome(UNCLEAR, f"serve --check changed files: {self.said()}")
        return None

    async def judge_acceptance(self, refusal: Outcome) -> Outcome:
        """Judges a start that accepts the loss, as the refusal offers: only acknowledged data remains, the log
        reports the loss, and the next start is normal."""
        if refusal.word != REFUSED:
            return refusal
        if not await self.comes_up("--accept-loss"):
            # There may be more faults than the missing data.
            outcome = self.judge_refusal(fingerprint(self.state))
            return refusal if outcome.word == REFUSED else Outcome(outcome.word, f"with --accept-loss: {outcome.said}")
        known = await asyncio.wait_for(ask(self.admin, self.scene), HANG_SECONDS)
        fault = invented(self.scene, known) or "" if "journal" in self.warnings() else "no warning names the journal"
        await asyncio.to_thread(self.end, signal.SIGKILL)
        if not fault and not await self.comes_up():
            fault = "the start after it is refused"
        if not fault:
            fault = difference(known, await asyncio.wait_for(ask(self.admin, self.scene), HANG_SECONDS))
        if fault:
            return Outcome(SILENT, f"with --accept-loss: {fault}: {self.said()}; before: {refusal.said}")
        return Outcome(REFUSED, refusal.said)

    def warnings(self) -> str:
        return "; ".join(line for line in self.said().splitlines() if " warning " in line or " error " in line)

    def judge_refusal(self, before: dict[str, str]) -> Outcome:
        said, status = self.said(), self.process.returncode
        if status < 0:
            return Outcome(DIED, f"{signal.Signals(-status).name}: {said[-400:]}")
        if status != 1:
            return Outcome(UNCLEAR, f"exit status {status}: {said}")
        if not any(name in said for name in (*os.listdir(self.scene.state), "token.key")):
            return Outcome(UNCLEAR, f"its message names no file: {said}")
        if not REMEDIES.search(said):
            return Outcome(UNCLEAR, f"its message has no remedy: {said}")
        after = fingerprint(self.state)
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        if changed:
            return Outcome(UNCLEAR, f"it changed {', '.join(changed)}: {said}")
        return Outcome(REFUSED, said)


def fingerprint(folder: str) -> dict[str, str]:
    """Returns the kind and content of each name in a state folder. The index of a log is rebuilt at every start, and
    `lock` is empty."""
    found = {}
    for parent, folders, names in os.walk(folder):
        for name in names + folders:
            path = os.path.join(parent, name)
            kind = os.lstat(path).st_mode
            if name.endswith("-shm") or name == "lock":
                continue
            content = ""
            if stat.S_ISREG(kind):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            elif stat.S_ISLNK(kind):
                content = os.readlink(path)
            found[os.path.relpath(path, folder)] = f"{kind:o} {content}"
    return found


def difference(expected: Known, found: Known) -> str:
    """Returns the differences in counters and devices; empty if they are unchanged."""
    parts = []
    if found.books != expected.books:
        accepted = [books["pushes"]["accepted"] for books in (found.books, expected.books)]
        parts.append(f"{accepted[0]} of {accepted[1]} pushes" if accepted[0] != accepted[1] else "other counters")
    others = [token for token, device in expected.devices.items() if found.devices[token] != device]
    if others:
        gone = sum(found.devices[token] is None for token in others)
        parts.append(f"{gone} of {len(expected.devices)} devices gone and {len(others) - gone} changed")
    return " and ".join(parts)


def invented(scene: Scene, known: Known) -> str:
    """Returns the data that a start with losses has, although it was never acknowledged; None if there is none."""
    if fault := ledger.imbalance(known.books):
        return fault
    if known.books["pushes"]["accepted"] > scene.known.books["pushes"]["accepted"]:
        return f"it has {known.books['pushes']['accepted']} pushes"
    held = [device[key]["apnsID"] for device in known.devices.values() if device for key in WAITING if device[key]]
    others = sorted(set(held) - set(scene.apns_ids))
    return f"pushes wait that were never sent: {others}" if others else ""


async def run(program: str, folder: str, verdicts: Verdicts, options: argparse.Namespace) -> None:
    builder = SceneBuilder(program, folder, options.seed)
    scenes = await builder.build()
    damages = Damages(builder.gateway.command, folder, scenes, options)
    await damages.learn()
    numbers = iter(range(options.first, options.first + options.starts))
    outcomes: list[tuple[str, Outcome]] = []

    async def lane() -> None:
        for number in numbers:
            done, outcome = await damages.one(number)
            outcomes.append((done, outcome))
            repeat = f"--seed {options.seed} --first {number} --starts 1"
            for word, check in CHECKS.items():
                verdicts.check(check, outcome.word != word, f"{repeat}: {done}: {outcome.said}")
            if options.verbose:
                print(f"      {number} {done}: {outcome.word}: {outcome.said}", flush=True)

    await asyncio.gather(*(lane() for _ in range(AT_ONCE)))
    tell(outcomes, verdicts)


def tell(outcomes: list[tuple[str, Outcome]], verdicts: Verdicts) -> None:
    """Returns the figures, and each message with its count."""
    words = collections.Counter(outcome.word for _, outcome in outcomes)
    name = "every damaged start is exact, refused by name, or sets the history aside with a warning"
    figures = ", ".join(f"{words[word]:,} {word}" for word in (EXACT, REFUSED, SET_ASIDE, *CHECKS))
    verdicts.equal(name, figures, sum(words[word] for word in CHECKS), 0)
    verdicts.note(name, f"{len(outcomes):,} starts: {figures}")
    # Without numbers, so that similar messages are counted together.
    said = collections.Counter(
        re.sub(r"\d[\dT:.-]*Z?", "N", f"{outcome.word}: {outcome.said[:SAID_MAX]}")
        for _, outcome in outcomes if outcome.word in (REFUSED, SET_ASIDE)
    )  # fmt: skip
    faults = collections.Counter(
        re.sub(r"\d+", "N", f"FAULT {outcome.word}: {done.partition(', ')[2]}: {outcome.said[:100]}")
        for done, outcome in outcomes if outcome.word in CHECKS
    )  # fmt: skip
    for each, count in said.most_common(SAID_KINDS_MAX) + faults.most_common(SAID_KINDS_MAX):
        print(f"      {count:5} {each}")


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    everything = argparse.Namespace(**{"first": 0, "verbose": False, **vars(options)})
    # This test does not depend on syncs.
    with tempfile.TemporaryDirectory(prefix="wakegate-damage.", dir=processes.MEMORY) as folder:
        asyncio.run(run(program, folder, verdicts, everything))
    return verdicts


if __name__ == "__main__":
    # `first` is the number of the first damage, for repeating it.
    trial.run("damage", soak, starts=24, first=0, verbose=False)
