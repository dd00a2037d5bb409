"""Runs that are compared take turns, so that what the machine does meanwhile meets all of them."""

import statistics
from collections.abc import Callable

Sample = dict[str, float]


def run(
    runs: int, sides: dict[str, Callable[[], Sample]], between: Callable[[], None] | None = None
) -> dict[str, list[Sample]]:
    """The samples of each side: `runs` of them, and one before that registers devices and warms caches, and does not
    count. Each goes first as often as another."""
    samples: dict[str, list[Sample]] = {name: [] for name in sides}
    for number in range(runs + 1):
        names = list(sides)
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            if between:
                between()
            sample = sides[name]()
            if number > 0:
                samples[name].append(sample)
    return samples


def medians(samples: list[Sample], digits: int = 3) -> Sample:
    """The median of each figure separately."""
    return {key: round(statistics.median(sample[key] for sample in samples), digits) for key in samples[0]}
