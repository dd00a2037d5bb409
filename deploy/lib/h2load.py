"""h2load, one process a connection.

All connections of one h2load ask for the same paths in the same order, at the same time: of a hundred pushes that
arrive together, a hundred would be for one device, which no provider does and which costs a gateway next to nothing.
"""

import os
import re
import subprocess
import time

SECONDS_MAX = 600


def write_paths(folder: str, name: str, paths: list[str], connections: int) -> None:
    """Deals the paths out to the connections."""
    for connection in range(connections):
        with open(os.path.join(folder, f"{name}.{connection}"), "w", encoding="ascii") as file:
            file.writelines(f"https://127.0.0.1{path}\n" for path in paths[connection::connections])


def run(
    base: str, uris: str, body: str, headers: list[str], connections: int, streams: int, requests: int,
    prefix: list[str] | None = None, rate: int | None = None, together: int = 1,
) -> float:  # fmt: skip
    """Sends the requests, and gives the seconds that took; anything but a 2xx to each ends the measurement.

    `rate` holds each connection to so many requests a second. `together` connections share a process, and paths.
    """
    each = requests // connections * together
    pace = ["--rps", str(rate)] if rate else []
    started = time.monotonic()
    processes = [
        subprocess.Popen(
            [
                *(prefix or []), "h2load", "-t", "1", "-c", str(together), "-m", str(streams), "-n", str(each), "-d", body,
                "-i", f"{uris}.{connection}", "-B", base, *pace, *headers,
            ],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for connection in range(connections // together)
    ]  # fmt: skip
    spawned = time.monotonic() - started
    longest = 0.0
    for process in processes:
        output = process.communicate(timeout=SECONDS_MAX)[0]
        codes = re.search(r"status codes: (\d+) 2xx", output)
        if not codes or int(codes.group(1)) != each:
            raise SystemExit(f"not every reply was 2xx; the run does not count:\n{output}")
        longest = max(longest, seconds(output))
    # The first began when the last had not: at most that much longer than the longest of them. Reading the paths, which
    # each does before it begins, is left out.
    return longest + spawned


def seconds(output: str) -> float:
    """How long one h2load says it took."""
    value, unit = re.search(r"finished in ([\d.]+)(us|ms|s|m)", output).groups()
    return float(value) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}[unit]
