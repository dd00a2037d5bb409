"""Runs the long tests, and prints a line for each check and the result. deploy/soak calls it."""

import argparse
import random
import signal
import sys
import time

from crash import driver
from soak import attacks, cluster, damage, full, load, power, transfers

KINDS = {
    "crash": driver.soak,
    "power": power.soak,
    "full": full.soak,
    "damage": damage.soak,
    "load": load.soak,
    "attacks": attacks.soak,
    "cluster": cluster.soak,
    "transfers": transfers.soak,
}


def kinds(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in KINDS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(KINDS)}")
    return names


def main() -> int:
    # Being stopped from outside must not leave any process or mount behind either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(prog="deploy/soak", allow_abbrev=False)
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", type=kinds, default=list(KINDS), help="one of them, or several with commas between")
    parser.add_argument("--kills", type=int, help="of the crash test and of agents, 60; of gateways of the cluster, 100")
    parser.add_argument("--losses", type=int, default=20, help="of power, half of them on ext4 and half on xfs")
    parser.add_argument("--starts", type=int, default=2000, help="of the damage test")
    parser.add_argument("--first", type=int, default=0, help="the number of its first damage, to repeat one")
    parser.add_argument("--minutes", type=float, default=3, help="of the load test")
    parser.add_argument("--rate", type=int, default=4000, help="pushes a second of the load test")
    parser.add_argument("--promotions", type=int, default=20, help="of standbys of the cluster, each primary killed")
    parser.add_argument("--others", type=int, default=2, help="how often the cluster meets each other fault")
    parser.add_argument("--acknowledged", type=int, default=200_000, help="pushes of the cluster, at least")
    parser.add_argument("--pushes-a-second", type=int, default=600, help="of the cluster")
    parser.add_argument("--devices", type=int, default=1000, help="of the cluster")
    parser.add_argument("--ways", type=int, default=2000, help="pushes of the cluster whose way is asked for")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    given = parser.parse_args()
    all_passed = True
    for kind, soak in KINDS.items():
        if kind not in given.only:
            continue
        started = time.monotonic()
        # Each part has its own full length, and therefore gets its own copy of the options.
        options = argparse.Namespace(**vars(given))
        options.kills = given.kills or (100 if kind == "cluster" else 60)
        print(f"== {kind}, seed {options.seed}", flush=True)
        verdicts = soak(options.program, options)
        verdicts.print(kind)
        print(f"      {time.monotonic() - started:.0f} s\n", flush=True)
        all_passed = all_passed and verdicts.passed
    print("PASS: every check held" if all_passed else "FAIL: not every check held, or not every one was made")
    return 0 if all_passed else 1


if __name__ == "__main__":
    sys.exit(main())
