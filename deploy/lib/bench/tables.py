"""The results as tables for the terminal, for the file of figures and for the page on speed."""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

PAGE = "Sources/Server/Gateway/Gateway.docc/Speed.md"
# `write` writes everything from here to the end of the page, so that no figure is entered manually.
HEADING = "## Figures\n"


@dataclass
class Table:
    """A table with notes, and whether each of its targets was reached."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    passed: list[bool] = field(default_factory=list)

    def target(self, passed: bool) -> str:
        """Counts a target, and returns a word for its result."""
        self.passed.append(passed)
        return verdict(passed)

    def console(self) -> str:
        widths = [max(len(row[column]) for row in [self.columns, *self.rows]) for column in range(len(self.columns))]

        def line(row: list[str]) -> str:
            first, rest = row[0].ljust(widths[0]), zip(row[1:], widths[1:], strict=True)
            return "  " + "  ".join([first, *(cell.rjust(width) for cell, width in rest)]).rstrip()

        return "\n".join(
            [f"\n{self.title}", *map(line, [self.columns, *self.rows]), *(f"  {note}" for note in self.notes)]
        )

    def markdown(self) -> str:
        rule = "|".join(["", "---", *["---:"] * (len(self.columns) - 1), ""])
        lines = [f"| {' | '.join(row)} |" for row in self.rows]
        notes = ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join([f"### {self.title}", "", f"| {' | '.join(self.columns)} |", rule, *lines, *notes])


def verdict(passed: bool) -> str:
    return "PASS" if passed else "FAIL"


def microseconds(value: float) -> str:
    """Formats a duration in a suitable unit."""
    return f"{value:.0f} us" if value < 1000 else f"{value / 1000:.2f} ms"


def machine_line(machine: dict) -> str:
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def figures(results: dict, parts: Iterable[str]) -> str:
    tables = [Table(**table).markdown() for name in parts for table in results.get(name, [])]
    intro = f"`deploy/bench --write-page` wrote what follows. Measured on: {machine_line(results['machine'])}."
    return "\n\n".join([intro, *tables]) + "\n"


def write(path: str, parts: Iterable[str]) -> None:
    """Replaces the page's figures by those of `parts` in the file at `path`."""
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    except OSError:
        sys.exit(f"deploy/bench: there is no {path}; run deploy/bench first")
    with open(PAGE, encoding="utf-8") as file:
        above, heading, _ = file.read().partition(HEADING)
    if not heading:
        sys.exit(f'deploy/bench: {PAGE} has no line "{HEADING.strip()}"')
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(f"{above}{heading}\n{figures(results, parts)}")
