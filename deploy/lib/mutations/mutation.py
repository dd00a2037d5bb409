"""A planted fault: the rule that it breaks, its place, and the tests that must detect it."""

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

CATALOGUE = Path(__file__).parent / "catalogue"


class NotFound(Exception):
    """A catalog that does not match the sources."""


@dataclass(frozen=True)
class Mutation:
    """A patch of a text that the sources have once, in any file. White space is ignored."""

    # In the form "part.subject".
    name: str
    # The promise that is broken, as a sentence.
    breaks: str
    # The function that contains the text, for the reader of the catalog.
    function: str
    text: str
    replacement: str
    # A regular expression for `swift test --filter`. One of the matching tests must fail.
    tests: str

    def planted(self, root: Path) -> tuple[Path, str]:
        """Returns the file below `root` that contains the text, and its content with the fault."""
        if self.replacement == self.text:
            raise NotFound(f"{self.name}: its replacement changes nothing")
        pattern = re.compile(r"\s+".join(map(re.escape, self.text.split())))
        found = [(path, match) for path, content in sources(root) for match in pattern.finditer(content)]
        if not found:
            raise NotFound(f"{self.name}: no Sources/**/*.swift has its text, by {self.function}:\n{self.text}")
        if len(found) > 1:
            places = ", ".join(sorted({str(path.relative_to(root)) for path, _ in found}))
            raise NotFound(f"{self.name}: its text is there {len(found)} times, in {places}; extend it:\n{self.text}")
        [(path, match)] = found
        return path, match.string[: match.start()] + self.replacement + match.string[match.end() :]


@functools.cache
def sources(root: Path) -> list[tuple[Path, str]]:
    """Returns every source below `root`, with its content."""
    return [(path, path.read_text(encoding="utf-8")) for path in sorted((root / "Sources").rglob("*.swift"))]


def catalogue() -> list[Mutation]:
    """Returns all faults, file by file."""
    parts = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(CATALOGUE.glob("*.toml"))]
    return [Mutation(**fault) for part in parts for fault in part["fault"]]
