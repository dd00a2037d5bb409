"""Simulates a day of a fleet, with refreshes put off for habits and without, and prints the page. Called by
deploy/fleet-day."""

import argparse
import sys
from pathlib import Path

from fleet import handlers, population
from fleet.figures import DAILY_LAUNCHES, LAUNCH_INTERVAL, PROCESSING_INTERVAL, Figures, figures


def devices(text: str) -> int:
    count = int(text)
    # Fewer have too few habits to judge by.
    if not 20 <= count <= 100_000:
        raise argparse.ArgumentTypeError("a fleet has 20 to 100000 devices")
    return count


def minutes(value: float) -> str:
    return f"{value:.0f} min"


def comparison(habits: Figures, none: Figures) -> list[str]:
    rows = [
        ("uses in a habitual hour", f"{habits.habitual_uses:,}", f"{none.habitual_uses:,}"),
        ("  with a refresh in the hour before", percent(habits), percent(none)),
        ("  with one since 15 min before that hour", percent_in_lead(habits), percent_in_lead(none)),
        ("  median lead of the last refresh", minutes(habits.median_lead_minutes), minutes(none.median_lead_minutes)),
        ("refreshes", *(f"{sum(day.by_hour['appRefresh']):,}" for day in (habits, none))),
        ("pushes per launch of a push", f"{habits.pushes_per_launch:.2f}", f"{none.pushes_per_launch:.2f}"),
    ]
    lines = [f"{'refreshes before habitual use':42}{'put off up to 4 h':>19}{'never put off':>16}"]
    return lines + [f"{name:42}{with_habits:>19}{without:>16}" for name, with_habits, without in rows]


def percent(figures: Figures) -> str:
    return f"{figures.refreshed_percent:.0f} %"


def percent_in_lead(figures: Figures) -> str:
    return f"{100 * figures.refreshed_in_lead / max(figures.habitual_uses, 1):.0f} %"


def checks(habits: Figures, none: Figures) -> list[tuple[bool, str]]:
    both = (habits, none)
    charged = max(day.most_charged for day in both)
    interval = min(day.shortest_interval for day in both)
    processing = min(day.shortest_processing for day in both)
    misplaced = sum(day.misplaced for day in both)
    wrong = [fault for day in both for fault in day.books]
    empty = sum(count == 0 for count in map(sum, zip(*habits.by_hour.values())))
    return [
        (
            charged <= DAILY_LAUNCHES,
            f"at most {charged} launches were charged to a device in a day, of {DAILY_LAUNCHES}",
        ),
        (interval >= LAUNCH_INTERVAL, f"charged launches are {interval:,.0f} s apart at least, of {LAUNCH_INTERVAL} s"),
        (
            processing >= PROCESSING_INTERVAL,
            f"launches of processing are {processing:,.0f} s apart at least, of {PROCESSING_INTERVAL:,} s",
        ),
        (misplaced == 0, f"{misplaced} refreshes or processing in use, offline, or away from the charger"),
        (
            habits.refreshed > none.refreshed and habits.median_lead_minutes < none.median_lead_minutes,
            f"a refresh is there before {percent(habits)} of habitual uses, of {percent(none)} without habits",
        ),
        (empty == 0, f"{24 - empty} hours of 24 have launches"),
        (not wrong, "the books of pushes and requests balance" if not wrong else "; ".join(wrong)),
    ]


def page(title: str, habits: Figures, none: Figures) -> tuple[str, bool]:
    """The page, and whether everything on it is as promised."""
    judged = checks(habits, none)
    blocks = [[title], comparison(habits, none), [f"{'ok    ' if passed else 'FAILED'} {text}" for passed, text in judged]]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n", all(passed for passed, _ in judged)


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
