"""Finds declarations of Swift sources by name, in any file.

The end of a declaration is determined by the indentation of swift-format.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

DECLARATION = re.compile(
    r"^(?P<indent> *)(?:@[\w.]+(?:\([^)]*\))? )*(?:[a-z]+(?:\([a-z]+\))? )*?"
    r"(?P<kind>func|init|deinit|subscript|var|let|struct|class|enum|extension|actor|protocol)\b"
    r"(?: (?P<name>[\w.`]+|[^\w\s(]+))?"
)
TYPES = ("struct", "class", "enum", "extension", "actor", "protocol")


@dataclass(frozen=True)
class Declaration:
    """A declaration with its body. `name` includes the names of the enclosing declarations, such as
    `Dispatcher.flow`."""

    name: str
    path: Path
    start: int
    end: int


@functools.cache
def declarations(root: Path) -> list[Declaration]:
    """Returns every type, function, initializer and member of the sources below `root`."""
    return [each for path in sorted((root / "Sources").rglob("*.swift")) for each in declared(path)]


def declared(path: Path) -> list[Declaration]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    found: list[Declaration] = []
    # Around the line: the indentation of each declaration, whether it is a type, its name, and the line after it.
    around: list[tuple[int, bool, str, int]] = []
    for number, line in enumerate(lines):
        while around and number >= around[-1][3]:
            around.pop()
        match = DECLARATION.match(line)
        is_local = bool(around) and not around[-1][1]
        if not match or is_local and match["kind"] in ("var", "let"):
            continue
        indent, kind = len(match["indent"]), match["kind"]
        own = kind if kind in ("init", "deinit", "subscript") else match["name"] or ""
        name = ".".join([*(around[-1][2:3] if around else []), own])
        end = end_of(lines, number, indent)
        around.append((indent, kind in TYPES, name, end))
        found.append(Declaration(name, path, starts[number], starts[end]))
    return found


def end_of(lines: list[str], number: int, indent: int) -> int:
    """Returns the number of the line after the declaration that begins at a line."""
    for place in range(number + 1, len(lines)):
        text = lines[place].strip()
        if not text or len(lines[place]) - len(lines[place].lstrip()) > indent:
            continue
        if text[0] not in ")]}":
            return place
        if text[0] == "}" and not text.endswith("{"):
            return place + 1
    return len(lines)
