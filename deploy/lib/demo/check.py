"""Checks a run of deploy/demo. Arguments: /v1/stats as JSON, the times of the launches, and the interval in ms."""

import json
import sys

PUSHES = 14
LAUNCHES = 8
SPACING_SLACK_MS = 150


def main() -> int:
    stats_file, launches_file, interval = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(stats_file, encoding="utf-8") as file:
        stats = json.load(file)
    with open(launches_file, encoding="utf-8") as file:
        launches = [[int(word) for word in line.split()] for line in file]
    pushes, wakes = stats["pushes"], stats["wakes"]
    times = [launch[0] for launch in launches]
    gaps = [after - before for before, after in zip(times, times[1:])]
    discarded = sum(pushes["discarded"].values())
    ended = pushes["completed"] + pushes["coalesced"] + discarded + pushes["pending"] + pushes["inFlight"]
    other_results = sum(wakes["results"].values()) - wakes["results"]["newData"]
    window_end = times[0] + (PUSHES * interval) // 2 if times else 0
    within = sum(time < window_end for time in times)
    # A launch may come a few milliseconds before the end of an interval by the wall clock, but not by policy time.
    even = all(interval - 2 <= gap <= interval + SPACING_SLACK_MS for gap in gaps)
    books = (
        f"{pushes['accepted']} accepted = {pushes['completed']} completed + {pushes['coalesced']} coalesced "
        f"+ {discarded} discarded + {pushes['pending']} pending + {pushes['inFlight']} in flight"
    )
    checks = [
        (pushes["accepted"] == PUSHES, f"{pushes['accepted']} pushes accepted, {PUSHES} sent"),
        (
            len(launches) == LAUNCHES and wakes["launched"] == LAUNCHES and within == LAUNCHES - 1,
            f"{wakes['launched']} launches: {within} in the window and {len(launches) - within} at its end",
        ),
        (
            len(gaps) == LAUNCHES - 1 and even,
            "launches apart by " + ", ".join(f"{gap / 1000:.3f}" for gap in gaps) + " s",
        ),
        (
            wakes["results"]["newData"] == LAUNCHES and other_results == 0,
            f"{wakes['results']['newData']} results newData, {other_results} others",
        ),
        (
            len(launches) + sum(launch[1] for launch in launches) == PUSHES,
            f"the launches carried {len(launches) + sum(launch[1] for launch in launches)} pushes",
        ),
        (pushes["accepted"] == ended, books),
    ]
    for passed, text in checks:
        print("ok    " if passed else "FAILED", text)
    return 0 if all(passed for passed, _ in checks) else 1


sys.exit(main())
