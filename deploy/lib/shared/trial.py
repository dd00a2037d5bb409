"""The command line of the long tests that the test command also runs, each in a short form."""

import argparse
import random
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from shared.verdicts import Verdicts


def run(label: str, soak: Callable[[str, argparse.Namespace], Verdicts], **options: object) -> NoReturn:
    """Runs a long test with these options, whose defaults are for the short form, and exits with its result. A list
    contains the permitted values; such an option is required."""
    # Being stopped from outside must not leave any process or mount behind either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--program", required=True, help="the wakegate to run")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    for name, default in options.items():
        name = "--" + name.replace("_", "-")
        if isinstance(default, list):
            parser.add_argument(name, required=True, choices=default)
        elif isinstance(default, bool):
            parser.add_argument(name, action="store_true")
        else:
            parser.add_argument(name, type=type(default), default=default)
    given = parser.parse_args()
    print(f"      seed {given.seed}")
    verdicts = soak(given.program, given)
    verdicts.print(label)
    sys.exit(0 if verdicts.passed else 1)
