"""The checks, their counts and their failures; one PASS or FAIL line for each."""

import sys

DETAILS_MAX = 5


class Verdicts:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.failures: dict[str, list[str]] = {}
        self.notes: dict[str, str] = {}
        self.skipped: dict[str, str] = {}

    def check(self, name: str, holds: bool, detail: str) -> bool:
        """Counts one comparison of the check `name`; `detail` is the finding if it failed."""
        self.counts[name] = self.counts.get(name, 0) + 1
        if not holds:
            self.failures.setdefault(name, []).append(detail)
        return holds

    def equal(self, name: str, what: str, found: object, expected: object) -> bool:
        return self.check(name, found == expected, f"{what} is {found}, not {expected}")

    def within(self, name: str, what: str, found: int, least: int, most: int) -> bool:
        return self.check(name, least <= found <= most, f"{what} is {found}, not {least}...{most}")

    def note(self, name: str, text: str) -> None:
        """Adds figures that are printed with a check."""
        self.notes[name] = text

    def skip(self, name: str, why: str) -> None:
        self.skipped[name] = why

    def add(self, others: "Verdicts", where: str) -> None:
        """Adds the checks of another object, under names that begin with `where`."""
        for mine, theirs in (
            (self.counts, others.counts), (self.failures, others.failures), (self.notes, others.notes),
            (self.skipped, others.skipped),
        ):  # fmt: skip
            mine.update({f"{where}: {name}": value for name, value in theirs.items()})

    @property
    def passed(self) -> bool:
        return bool(self.counts) and not self.failures

    def print(self, label: str) -> None:
        for name, count in self.counts.items():
            failures = self.failures.get(name, [])
            note = f"; {self.notes[name]}" if name in self.notes else ""
            word = "FAIL" if failures else "PASS"
            failed = f", {len(failures)} failed" if failures else ""
            print(f"{word}  {label}: {name} ({count} checked{failed}{note})")
            for detail in failures[:DETAILS_MAX]:
                print(f"        {detail}")
        for name, why in self.skipped.items():
            print(f"SKIP  {label}: {name}: {why}")
        sys.stdout.flush()
