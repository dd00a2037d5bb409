"""Compared runs alternate, so that other load of the machine affects all of them."""

import statistics
from collections.abc import Callable

Sample = dict[str, float]


def run(
    runs: int, sides: dict[str, Callable[[], Sample]], between: Callable[[], None] | None = None
) -> dict[str, list[Sample]]:
    """Returns the samples of each side: `runs` samples after one that registers devices and warms caches and does
    not count. Each side is first equally often."""
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
    """Returns the median of each figure separately."""
    return {key: round(statistics.median(sample[key] for sample in samples), digits) for key in samples[0]}
