"""Plants the faults of the catalog, and prints which test detected each. deploy/mutations calls it."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from mutations.mutation import Mutation, NotFound, catalogue
from mutations.workshop import SOUND_SECONDS, BuildFailed, Workshop


def chosen(patterns: list[str]) -> list[Mutation]:
    mutations = catalogue()
    for pattern in patterns:
        if not any(mutation.name.startswith(pattern) for mutation in mutations):
            sys.exit(f"deploy/mutations: no name begins with {pattern}; --list shows them all")
    return [m for m in mutations if not patterns or any(m.name.startswith(pattern) for pattern in patterns)]


def faults(mutations: list[Mutation], root: Path) -> list[str]:
    """Returns the faults of the catalog. An entry that matches no source is an error."""
    found = []
    names: set[str] = set()
    for mutation in mutations:
        if mutation.name in names:
            found.append(f"{mutation.name}: two have this name")
        names.add(mutation.name)
        try:
            mutation.planted(root)
        except NotFound as fault:
            found.append(str(fault))
    return found


def sound(workshop: Workshop, mutations: list[Mutation]) -> bool:
    """Returns true if the tests pass without any fault, because a test that always fails detects nothing."""
    tests = "|".join(sorted({mutation.tests for mutation in mutations}))
    print("building the tests without a fault ...", flush=True)
    seconds = workshop.build("none")
    outcome = workshop.test(tests, "none", SOUND_SECONDS)
    if not outcome.passed or outcome.count == 0:
        print(f"deploy/mutations: the tests do not pass without a fault: {outcome.reason or 'none is named'}")
        print(f"{workshop.logs}/none.test.log has the whole output")
        return False
    print(f"built in {seconds:.0f} s; {outcome.count} tests pass\n", flush=True)
    return True


def plant(workshop: Workshop, mutations: list[Mutation]) -> int:
    """Plants the faults in sequence, and returns the number of faults that were detected."""
    caught = 0
    for mutation in mutations:
        started = time.monotonic()
        try:
            outcome = workshop.try_out(mutation)
            is_caught, what = not outcome.passed, outcome.reason
            if outcome.passed:
                what = f"{outcome.count} tests of {mutation.tests} pass" if outcome.count else "its filter names no test"
        except BuildFailed as failure:
            is_caught, what = False, f"it does not build: {failure}"
        caught += is_caught
        word = "CAUGHT" if is_caught else "MISSED"
        print(f"{word}  {mutation.name}: {mutation.breaks}")
        print(f"        {'by ' if is_caught else ''}{what} ({time.monotonic() - started:.0f} s)", flush=True)
    return caught


def main() -> int:
    # Being stopped from outside also removes the planted faults.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(prog="deploy/mutations", allow_abbrev=False)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="how a name begins")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    root = Path.cwd()
    mutations = chosen(options.patterns)
    if options.list:
        for mutation in mutations:
            print(f"{mutation.name:32} {mutation.breaks}")
        return 0
    wrong = faults(mutations, root)
    if wrong:
        print("\n".join(wrong))
        return 1
    if options.check:
        print(f"{len(mutations)} of {len(mutations)} are found in the sources")
        return 0
    # Colour codes would interrupt the text that is searched for.
    os.environ["NO_COLOR"] = "1"
    workshop = Workshop(root)
    workshop.copy()
    if not sound(workshop, mutations):
        return 1
    caught = plant(workshop, mutations)
    print(f"\n{caught} of {len(mutations)} caught")
    return 0 if caught == len(mutations) else 1


if __name__ == "__main__":
    sys.exit(main())
