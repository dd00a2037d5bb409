"""A steady load that measures the cost, the rate and the latency of an operation.

h2load runs for a limited time and logs each request. Only the time in which all of its processes were active counts.
Starts, handshakes and ends are not in the figures.
"""

import fcntl
import operator
import os
import subprocess
import tempfile
import threading
import time
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace

from clients import h2load
from shared import processes

CLOCK_SECONDS = 0.02
START_SECONDS = 10
# The maximum delay of a process at its end.
LATE_SECONDS = 0.8
# The default capacity of a pipe.
PIPE_BYTES = 1 << 16
# Logs are in memory. On disk, they would be synced together with the data of a durable server.
LOGS = processes.MEMORY
# The measured server has the first core for itself. The load has the other cores.
ALL_CORES = os.sched_getaffinity(0)
OTHER_CORES = ALL_CORES - {0} or ALL_CORES
SERVER_CORE = ["taskset", "-c", "0"]
LOAD_CORES = ["taskset", "-c", ",".join(str(core) for core in sorted(OTHER_CORES))]
# A hundred processes take a while to start. When the last one works, at least this much of the run must remain.
WINDOW_SECONDS_MIN = 1.0
ATTEMPTS = 3


@dataclass
class Load:
    """Requests to `base`: `rate` a second on each connection, or otherwise `streams` concurrent requests."""

    base: str
    uris: str
    body: str
    headers: list[str]
    connections: int
    streams: int
    seconds: float = 2.3
    warm_up_seconds: float = 0.3
    together: int = 1
    rate: int | None = None
    cores: set[int] = field(default_factory=lambda: OTHER_CORES)
    prefix: list[str] = field(default_factory=list)
    takes_refusals: bool = False

    def command(self, log: str) -> list[str]:
        pace = ["--rps", str(self.rate)] if self.rate else []
        span = ["-D", f"{self.seconds * 1000:.0f}ms", "--warm-up-time", f"{self.warm_up_seconds * 1000:.0f}ms"]
        options = [*span, *pace, "-i", "-", "--log-file", log]
        shape = (self.together, self.streams)
        return [*self.prefix, *h2load.command(self.base, self.body, self.headers, *shape, *options)]


@dataclass
class Log:
    """The requests of a process, in the order of their ends: the end and the duration of each, in microseconds."""

    ends: list[int]
    took: list[int]
    statuses: list[str]


def read(path: str) -> Log:
    with open(path, encoding="ascii") as file:
        # Without an incomplete last line.
        words = file.read().rpartition("\n")[0].split()
    took = list(map(int, words[2::3]))
    return Log(list(map(operator.add, map(int, words[0::3]), took)), took, words[1::3])


class Running:
    """The processes of a load; ended when the block is left.

    Each process waits for the end of its paths, in a pipe, until all processes have started. A hundred processes that
    start while others work would take longer to start than the run takes.
    """

    def __init__(self, load: Load):
        self.load = load
        self.deadline = 0.0
        # The message of a process that received no answer at all.
        self.silent = ""
        self.folder = tempfile.TemporaryDirectory(prefix="wakegate-bench.", dir=LOGS)
        self.logs = [os.path.join(self.folder.name, str(number)) for number in range(load.connections // load.together)]
        self.children = [
            subprocess.Popen(
                load.command(log), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
            )
            for log in self.logs
        ]  # fmt: skip

    def __enter__(self) -> "Running":
        for number, child in enumerate(self.children):
            with open(f"{self.load.uris}.{number}", "rb") as file:
                paths = file.read()
            # All paths must fit into the pipe, because the reader reads to its end only after it is closed.
            if len(paths) > PIPE_BYTES:
                fcntl.fcntl(child.stdin, fcntl.F_SETPIPE_SZ, len(paths))
            child.stdin.write(paths)
        deadline = time.monotonic() + START_SECONDS
        for child in self.children:
            while processes.statistics(child.pid)[0] != "S" and child.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
        for child in self.children:
            child.stdin.close()
        self.deadline = time.monotonic() + self.load.warm_up_seconds + self.load.seconds + LATE_SECONDS
        # They may use all cores until they have started, which takes a few milliseconds of work for each.
        time.sleep(self.load.warm_up_seconds * 2 / 3)
        for child in self.children:
            if child.poll() is None:
                # h2load sends on a thread of its own.
                processes.move(child.pid, self.load.cores)
        return self

    def __exit__(self, *_: object) -> None:
        for child in self.children:
            child.kill()
            child.wait()
            child.stdout.close()
        self.folder.cleanup()

    def finish(self) -> list[Log]:
        """Waits for the end, and returns the requests of each process.

        Some versions of h2load do not end until the server closes their connections. A process whose time is over is
        therefore killed.
        """
        while any(child.poll() is None for child in self.children) and time.monotonic() < self.deadline:
            time.sleep(0.01)
        logs = []
        for child, path in zip(self.children, self.logs, strict=True):
            child.kill()
            output = child.stdout.read().decode(errors="replace")
            logs.append(self.checked(read(path), output))
        return logs

    def checked(self, log: Log, output: str) -> Log:
        """Ends the measurement if an answer was not 2xx or another cipher was used."""
        if not log.ends:
            self.silent = output
            return log
        if not self.load.takes_refusals and log.statuses.count("200") != len(log.statuses):
            raise SystemExit(f"not every reply of {self.load.base} was 200; the run does not count:\n{output}")
        h2load.check_cipher(output, self.load.base)
        return log


class Clock:
    """Reads the CPU clock and the memory of a process repeatedly while the block lasts."""

    def __init__(self, pid: int):
        self.pid = pid
        self.times: list[float] = []
        self.spent: list[float] = []
        self.resident: list[float] = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.read)

    def read(self) -> None:
        while not self.ended.is_set():
            self.times.append(time.time())
            self.spent.append(processes.cpu_seconds(self.pid))
            self.resident.append(processes.resident_bytes(self.pid) / 1e6)
            self.ended.wait(CLOCK_SECONDS)

    def __enter__(self) -> "Clock":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    def spent_at(self, moment: float) -> float:
        """Returns the CPU seconds at a time, interpolated between the readings before and after."""
        after = min(max(1, bisect_left(self.times, moment)), len(self.times) - 1)
        start, end = self.times[after - 1], self.times[after]
        share = (moment - start) / (end - start)
        return self.spent[after - 1] + share * (self.spent[after] - self.spent[after - 1])


def window(logs: list[Log]) -> tuple[int, int]:
    """Returns the time in which all processes were active, in microseconds; empty if there is none."""
    if not all(log.ends for log in logs):
        return 0, 0
    return max(log.ends[0] for log in logs), min(log.ends[-1] for log in logs)


def observe(load: Load, pid: int) -> dict[str, float]:
    """Runs the load on the server: returns `perSecond`, `cpuMicroseconds` of each, `busy` in cores, `p50` and `p99`
    in microseconds, the share that was `refused`, and the maximum `residentMegabytes`."""
    return figures(*finished(load, pid))


def finished(load: Load, pid: int) -> tuple[list[Log], Clock]:
    """Returns a run of the load in which all processes were active together for long enough."""
    for _ in range(ATTEMPTS):
        with Clock(pid) as clock, Running(load) as running:
            logs = running.finish()
        start, end = window(logs)
        if end - start >= WINDOW_SECONDS_MIN * 1e6:
            return logs, clock
        # On a machine that also does other work, processes start late.
        load = replace(load, seconds=load.seconds * 2)
    raise SystemExit(
        f"all processes of the load on {load.base} were at work for {(end - start) / 1e6:.2f} s alone, which is too "
        f"short to count; is anything else running?\n{running.silent}"
    )


def inside(log: Log, start: int, end: int) -> slice:
    """Returns the requests of a process that ended in this time, in microseconds."""
    return slice(bisect_left(log.ends, start), bisect_right(log.ends, end))


def figures(logs: list[Log], clock: Clock) -> dict[str, float]:
    """Returns the figures of the time in which all processes were active."""
    start, end = window(logs)
    if start >= end:
        raise SystemExit("a process of the load had no answer at all; the run does not count")
    took, good = [], 0
    for log in logs:
        counted = inside(log, start, end)
        took += log.took[counted]
        good += log.statuses[counted].count("200")
    took.sort()
    count, elapsed = len(took), (end - start) / 1e6
    spent = clock.spent_at(end / 1e6) - clock.spent_at(start / 1e6)
    return {
        "perSecond": count / elapsed,
        "cpuMicroseconds": spent / count * 1e6,
        "busy": spent / elapsed,
        "p50": took[count // 2],
        "p99": took[count * 99 // 100],
        "refused": (count - good) / count,
        "residentMegabytes": max(clock.resident),
    }
