"""A copy of the sources with a build of its own, in which faults are planted one at a time."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from mutations import bundle
from mutations.bundle import Outcome
from mutations.mutation import Mutation


class BuildFailed(Exception):
    pass


class Workshop:
    def __init__(self, root: Path, folder: Path, jobs: int | None, test_seconds: float):
        self.root = root
        self.tree = folder / "tree"
        self.scratch = folder / "build"
        self.logs = folder / "logs"
        self.jobs = jobs
        self.test_seconds = test_seconds
        self.logs.mkdir(parents=True, exist_ok=True)

    def copy(self) -> None:
        """Brings the copy in line with the sources as they lie there; what has not changed keeps its time."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, check=True, capture_output=True,
        )  # fmt: skip
        names = {name for name in listed.stdout.decode().split("\0") if name and (self.root / name).is_file()}
        for path in list(self.tree.rglob("*")):
            # What the package manager and tests make beside the sources is left alone.
            relative = str(path.relative_to(self.tree))
            if path.is_file() and relative not in names and not relative.startswith("."):
                path.unlink()
        for name in sorted(names):
            source, target = self.root / name, self.tree / name
            if not target.is_file() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
            shutil.copymode(source, target)

    def build(self, log_name: str) -> float:
        """Builds the tests, and says in how many seconds."""
        started = time.monotonic()
        command = ["swift", "build", "--build-tests", "--scratch-path", str(self.scratch)]
        if self.jobs is not None:
            command += ["--jobs", str(self.jobs)]
        log = self.logs / f"{log_name}.build.log"
        with log.open("wb") as output:
            built = subprocess.run(command, cwd=self.tree, stdout=output, stderr=subprocess.STDOUT, check=False)
        if built.returncode != 0:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
            errors = [line for line in lines if "error:" in line] or lines[-5:]
            raise BuildFailed("\n".join(errors[:5]) + f"\n{log} has the whole output")
        return time.monotonic() - started

    def test(self, tests: str, log_name: str) -> Outcome:
        log = self.logs / f"{log_name}.test.log"
        return bundle.run(bundle.find(self.scratch), self.tree, tests, log, self.test_seconds)

    def try_out(self, mutation: Mutation) -> Outcome:
        """Plants a fault, builds, runs its tests, and takes it out again."""
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
        """Writes a file whose time is new for certain: builds look at nothing else."""
        before = path.stat().st_mtime_ns
        path.write_bytes(content)
        if path.stat().st_mtime_ns <= before:
            os.utime(path, ns=(before + 1_000_000, before + 1_000_000))
