"""Simulates a day of a fleet, with refreshes put off for habits and without, and prints the page. Called by
deploy/fleet-day."""

import argparse
import sys
from pathlib import Path

from fleet import handlers, population
from fleet.figures import figures
from fleet.page import page


def devices(text: str) -> int:
    count = int(text)
    # Fewer have too few habits to judge by.
    if not 20 <= count <= 100_000:
        raise argparse.ArgumentTypeError("a fleet has 20 to 100000 devices")
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/fleet-day", allow_abbrev=False)
    parser.add_argument("--program", required=True, help="the wakegate that simulates; built by default")
    parser.add_argument("--devices", type=devices, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where the two traces are left")
    options = parser.parse_args()
    fleet = population.fleet(options.devices, options.seed)
    days = []
    for name, settings in (("habits", []), ("no-habits", ["policy.refreshFlex=0"])):
        outcome = handlers.day(options.program, fleet, settings)
        days.append(figures(fleet, outcome))
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{name}.trace.jsonl").write_text("\n".join(outcome.trace) + "\n", encoding="utf-8")
    title = f"A day of {options.devices:,} devices in virtual time, after a week of use (seed {options.seed})"
    text, passed = page(title, *days)
    print(text, end="")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
