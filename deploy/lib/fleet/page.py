"""The page about a day, and whether what it says is as promised."""

from fleet.figures import DAILY_LAUNCHES, KINDS, LAUNCH_INTERVAL, PROCESSING_INTERVAL, Figures
from fleet.population import DAY

BAR_WIDTH = 52
# What stands for a launch in the bars.
MARKS = {"push": "=", "appRefresh": "+", "processing": "o"}
NAMES = {"push": "pushes", "appRefresh": "refreshes", "processing": "processing"}


def histogram(figures: Figures) -> list[str]:
    totals = [sum(figures.by_hour[kind][hour] for kind in KINDS) for hour in range(24)]
    scale = BAR_WIDTH / max(*totals, 1)
    lines = ["hour  pushes  refreshes  processing    uses"]
    for hour in range(24):
        counts = [figures.by_hour[kind][hour] for kind in KINDS]
        bar = ""
        reached = 0
        for kind, count in zip(KINDS, counts):
            reached += count
            bar += MARKS[kind] * (round(reached * scale) - len(bar))
        columns = f"{counts[0]:8,}{counts[1]:11,}{counts[2]:12,}{figures.uses_by_hour[hour]:8,}"
        lines.append(f"{hour:4}{columns}  {bar}".rstrip())
    sums = [sum(figures.by_hour[kind]) for kind in KINDS]
    lines.append(f" all{sums[0]:8,}{sums[1]:11,}{sums[2]:12,}{sum(figures.uses_by_hour):8,}")
    return lines


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


def most(figures: Figures) -> list[str]:
    """The most launches of one device in the day, beside the most that the rules allow it."""
    # Pushes of priority 10, and those that come while the device is in use, are beside the interval.
    allowed = {"appRefresh": str(DAILY_LAUNCHES), "processing": str(DAY // PROCESSING_INTERVAL)}
    words = []
    for kind in KINDS:
        of = f" of {allowed[kind]}" if kind in allowed else ""
        words.append(f"{figures.most[kind]}{of} {NAMES[kind]}")
    return [f"most launches of one device: {', '.join(words)}"]


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
    legend = ", ".join(f"{mark} {NAMES[kind]}" for kind, mark in MARKS.items())
    judged = checks(habits, none)
    blocks = [
        [title],
        [f"launches by hour ({legend})", *histogram(habits)],
        comparison(habits, none),
        most(habits) + [f"{'ok    ' if passed else 'FAILED'} {text}" for passed, text in judged],
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n", all(passed for passed, _ in judged)
