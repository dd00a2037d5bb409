"""A copy of the sources with a separate build, in which faults are planted one at a time, and the results of the
tests."""

import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from mutations.mutation import Mutation

TEST_SECONDS = 180
# The tests of all chosen faults, run once without a fault, take this many seconds at most.
SOUND_SECONDS = 1800
SUMMARY = re.compile(r"Test run with (\d+) tests?.* (passed|failed) after")
FAILED_TEST = re.compile(r"✘ Test (\"[^\"]*\"|\S+?)(?: with \d+ test cases?)? failed after")
ISSUE = re.compile(r"✘ Test (\"[^\"]*\"|\w+\([^)]*\)).*recorded an issue")
FATAL = re.compile(r"(?:Fatal error|Precondition failed|Assertion failed)(?:: .*)?")


@dataclass(frozen=True)
class Outcome:
    # The number of tests that the filter selected; 0 if the run ended before it reported it.
    count: int
    passed: bool
    # The first test that failed, or how the run ended.
    reason: str


def bundle_in(scratch: Path) -> Path:
    bundles = sorted(scratch.glob("*/debug/*PackageTests.xctest"))
    if len(bundles) != 1:
        raise FileNotFoundError(f"{scratch} has {len(bundles)} bundles of tests")
    return bundles[0]


def run_tests(bundle: Path, tree: Path, tests: str, log: Path, seconds: float) -> Outcome:
    """Runs the tests in `tree`. Tests that take longer than `seconds` count as stuck, which is also a failure."""
    # The first line of the runtime already reports a crash. Its trace of every thread would take seconds.
    environment = dict(os.environ, SWIFT_BACKTRACE="enable=no")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [bundle, "--testing-library", "swift-testing", "--filter", tests],
            cwd=tree, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        hangs = False
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            hangs = True
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return judge(log.read_text(encoding="utf-8", errors="replace"), process.returncode, seconds if hangs else None)


def judge(text: str, status: int, stuck_after: float | None) -> Outcome:
    summary = SUMMARY.findall(text)
    count = int(summary[-1][0]) if summary else 0
    # If the filter selects no test, the run ends with a special status, and no test has failed.
    if summary and summary[-1][1] == "passed" and (status == 0 or count == 0):
        return Outcome(count, True, "")
    failed = FAILED_TEST.search(text) or ISSUE.search(text)
    if failed:
        return Outcome(count, False, failed.group(1).strip('"'))
    fatal = FATAL.search(text)
    if fatal:
        return Outcome(count, False, f"a check in the program: {fatal.group(0)}")
    if stuck_after is not None:
        return Outcome(count, False, f"no end within {stuck_after} s")
    return Outcome(count, False, f"the run ended with {status}")


class BuildFailed(Exception):
    pass


class Workshop:
    def __init__(self, root: Path):
        folder = root / ".build/mutations"
        self.root, self.tree, self.scratch, self.logs = root, folder / "tree", folder / "build", folder / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def copy(self) -> None:
        """Updates the copy from the sources; unchanged files keep their modification times."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, check=True, capture_output=True,
        )  # fmt: skip
        names = {name for name in listed.stdout.decode().split("\0") if name and (self.root / name).is_file()}
        for path in list(self.tree.rglob("*")):
            # Do not touch the files that the package manager and tests create next to the sources.
            relative = str(path.relative_to(self.tree))
            if path.is_file() and relative not in names and not relative.startswith("."):
                path.unlink()
        for name in sorted(names):
            source, target = self.root / name, self.tree / name
            if not target.is_file() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
            shutil.copymode(source, target)
        # Tests start Python with the packages that deploy/setup installed.
        for source in (self.root / ".build").glob("venv*"):
            target = self.tree / ".build" / source.name
            target.parent.mkdir(exist_ok=True)
            if not target.is_symlink():
                target.symlink_to(source)

    def build(self, log_name: str) -> float:
        """Builds the tests, and returns the seconds that this took."""
        started = time.monotonic()
        # Debug information would take a quarter of the compiler's time.
        command = ["swift", "build", "--build-tests", "-debug-info-format", "none", "--scratch-path", str(self.scratch)]
        log = self.logs / f"{log_name}.build.log"
        with log.open("wb") as output:
            built = subprocess.run(command, cwd=self.tree, stdout=output, stderr=subprocess.STDOUT, check=False)
        if built.returncode != 0:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            errors = [line for line in lines if "error:" in line] or lines[-5:]
            raise BuildFailed("\n".join(errors[:5]) + f"\n{log} has the whole output")
        return time.monotonic() - started

    def test(self, tests: str, log_name: str, seconds: float = TEST_SECONDS) -> Outcome:
        log = self.logs / f"{log_name}.test.log"
        return run_tests(bundle_in(self.scratch), self.tree, tests, log, seconds)

    def try_out(self, mutation: Mutation) -> Outcome:
        """Plants a fault, builds, runs its tests, and removes the fault."""
        path, planted = mutation.planted(self.tree)
        content = path.read_bytes()
        self._write(path, planted.encode())
        try:
            self.build(mutation.name)
            return self.test(mutation.tests, mutation.name)
        finally:
            self._write(path, content)

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        """Writes a file with a new modification time, because builds check only that."""
        before = path.stat().st_mtime_ns
        path.write_bytes(content)
        if path.stat().st_mtime_ns <= before:
            os.utime(path, ns=(before + 1_000_000, before + 1_000_000))
