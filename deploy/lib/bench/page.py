"""Writes measured figures into the page on speed, so that none of them is typed by hand."""

import json
import sys
from collections.abc import Callable
from typing import Any

from bench.tables import Table

PAGE = "Sources/Gateway/Gateway/Gateway.docc/Speed.md"
# Everything from here to the end of the page is written by this module.
HEADING = "## Figures\n"


def machine_line(machine: dict) -> str:
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def figures(results: dict, shown: dict[str, Callable[[Any], list[Table]]]) -> str:
    tables = [table.markdown() for name, tables in shown.items() if name in results for table in tables(results[name])]
    intro = f"`deploy/bench --write-page` wrote what follows. Measured on: {machine_line(results['machine'])}."
    return "\n\n".join([intro, *tables]) + "\n"


def write(path: str, shown: dict[str, Callable[[Any], list[Table]]]) -> int:
    """Replaces the figures of the page by those in the file at `path`; the exit status of deploy/bench."""
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
    except OSError:
        print(f"deploy/bench: there is no {path}; run deploy/bench first", file=sys.stderr)
        return 1
    with open(PAGE, encoding="utf-8") as file:
        above, heading, _ = file.read().partition(HEADING)
    if not heading:
        print(f'deploy/bench: {PAGE} has no line "{HEADING.strip()}"', file=sys.stderr)
        return 1
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(f"{above}{heading}\n{figures(results, shown)}")
    return 0
