"""Waiting until a condition holds."""

import time
from collections.abc import Callable


def until(holds: Callable[[], object], seconds: float = 120, rest: float = 0.02) -> bool:
    """Waits until a condition holds, for at most `seconds`. Returns whether it does."""
    deadline = time.monotonic() + seconds
    while not (is_so := holds()) and time.monotonic() < deadline:
        time.sleep(rest)
    return bool(is_so)
