"""A planted fault: the rule that it breaks, its place, and the tests that must detect it."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from mutations.declarations import Declaration, declarations

CATALOGUE = Path(__file__).parent / "catalogue"


class NotFound(Exception):
    """A catalog that does not match the sources."""


@dataclass(frozen=True)
class Mutation:
    """A patch of a function, in any file. It is found by the function's full name; if its type was renamed, by the
    last part of the name; if the function was renamed, by the text alone. White space is ignored."""

    # In the form "part.subject".
    name: str
    # The promise that is broken, as a sentence.
    breaks: str
    function: str
    text: str
    replacement: str
    # A regular expression for `swift test --filter`. One of the matching tests must fail.
    tests: str

    def planted(self, root: Path) -> tuple[Path, str]:
        """Returns the file below `root`, and its content with the fault."""
        if self.replacement == self.text:
            raise NotFound(f"{self.name}: its replacement changes nothing")
        path, start, end = self.place(root)
        content = path.read_text(encoding="utf-8")
        return path, content[:start] + self.replacement + content[end:]

    def place(self, root: Path) -> tuple[Path, int, int]:
        """Returns the file that contains the text, and the start and end of the text."""
        known = declarations(root)
        last = self.function.rpartition(".")[2]
        for some in (
            [each for each in known if each.name == self.function],
            [each for each in known if each.name.rpartition(".")[2] == last],
            known,
        ):
            found = self.occurrences(some)
            if len(found) == 1:
                return found.pop()
            if found:
                places = ", ".join(sorted({str(path.relative_to(root)) for path, _, _ in found}))
                count = len(found)
                raise NotFound(f"{self.name}: {self.function} has its text {count} times, in {places}:\n{self.text}")
        raise NotFound(f"{self.name}: no Sources/**/*.swift has its text, by {self.function}:\n{self.text}")

    def occurrences(self, places: list[Declaration]) -> set[tuple[Path, int, int]]:
        pattern = re.compile(r"\s+".join(map(re.escape, self.text.split())))
        by_path: dict[Path, list[Declaration]] = {}
        for each in places:
            by_path.setdefault(each.path, []).append(each)
        found = set()
        for path, inside in by_path.items():
            for start, end in map(re.Match.span, pattern.finditer(path.read_text(encoding="utf-8"))):
                if any(each.start <= start and end <= each.end for each in inside):
                    found.add((path, start, end))
        return found


def catalogue() -> list[Mutation]:
    """Returns all faults, file by file."""
    parts = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(CATALOGUE.glob("*.toml"))]
    return [Mutation(**fault) for part in parts for fault in part["fault"]]
