"""The built tests: runs those that a filter names, and says what came of them."""

import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

SUMMARY = re.compile(r"Test run with (\d+) tests?.* (passed|failed) after")
FAILED_TEST = re.compile(r"✘ Test (\"[^\"]*\"|\S+?)(?: with \d+ test cases?)? failed after")
ISSUE = re.compile(r"✘ Test (\"[^\"]*\"|\w+\([^)]*\)).*recorded an issue")
FATAL = re.compile(r"(?:Fatal error|Precondition failed|Assertion failed)(?:: .*)?")


@dataclass(frozen=True)
class Outcome:
    # How many tests the filter named; 0 when the run ended before it said so.
    count: int
    passed: bool
    # The first test that failed, or how the run ended.
    reason: str


def find(scratch: Path) -> Path:
    bundles = sorted(scratch.glob("*/debug/*PackageTests.xctest"))
    if len(bundles) != 1:
        raise FileNotFoundError(f"{scratch} has {len(bundles)} bundles of tests")
    return bundles[0]


def run(bundle: Path, tree: Path, tests: str, log: Path, seconds: float) -> Outcome:
    """Runs the tests in `tree`. What takes longer than `seconds` hangs, which no test suite would let pass either."""
    # A crash is told by the runtime's first line; its trace of every thread would take seconds.
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
    return judge(log.read_text(encoding="utf-8", errors="replace"), process.returncode, hangs, seconds)


def judge(text: str, status: int, hangs: bool, seconds: float) -> Outcome:
    summary = SUMMARY.findall(text)
    count = int(summary[-1][0]) if summary else 0
    # A filter that names no test ends with a status of its own, and nothing has failed.
    if summary and summary[-1][1] == "passed" and (status == 0 or count == 0):
        return Outcome(count, True, "")
    failed = FAILED_TEST.search(text) or ISSUE.search(text)
    if failed:
        return Outcome(count, False, failed.group(1).strip('"'))
    fatal = FATAL.search(text)
    if fatal:
        return Outcome(count, False, f"a check in the program: {fatal.group(0)}")
    if hangs:
        return Outcome(count, False, f"no end within {seconds:.0f} s")
    return Outcome(count, False, f"the run ended with {status}")
