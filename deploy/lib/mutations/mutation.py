"""One planted fault: what it breaks, where, and which tests must notice."""

from dataclasses import dataclass
from pathlib import Path


class NotFound(Exception):
    """A catalogue that does not fit the sources any more."""


@dataclass(frozen=True)
class Mutation:
    # Of the form "part.subject".
    name: str
    # What does not hold any more, as a sentence of the promise that is broken.
    breaks: str
    file: str
    text: str
    replacement: str
    # A regular expression of the tests' names, as `swift test --filter` takes it: one of them must fail.
    tests: str

    def planted(self, root: Path) -> str:
        """The file's content with the fault in it."""
        path = root / self.file
        if not path.is_file():
            raise NotFound(f"{self.name}: there is no {self.file}")
        content = path.read_text(encoding="utf-8")
        count = content.count(self.text)
        if count != 1:
            raise NotFound(f"{self.name}: {self.file} has its text {count} times, not once:\n{self.text}")
        if self.replacement == self.text:
            raise NotFound(f"{self.name}: its replacement changes nothing")
        return content.replace(self.text, self.replacement)
