"""The library stays small enough to be read."""

from __future__ import annotations

import ast
import tokenize
from pathlib import Path
from typing import Set

import wakegate

_SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(file: Path) -> int:
    """Counts the lines that hold code: no blank lines, comments or documentation."""
    text = file.read_text(encoding="utf-8")
    documentation: Set[int] = set()
    for node in ast.walk(ast.parse(text)):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node):
            documentation.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines: Set[int] = set()
    for token in tokenize.generate_tokens(iter(text.splitlines(True)).__next__):
        if token.type not in _SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documentation)


def test_size() -> None:
    files = list(Path(wakegate.__file__).parent.glob("*.py"))
    assert sum(map(code_lines, files)) <= 1450
    assert all(len(line) <= 120 for file in files for line in file.read_text(encoding="utf-8").split("\n"))
