"""A thousand continued tasks that report their progress four times a second: CPU a report, and what pushes notice of it.

Short slices of pushes at an easy pace, with the reports and without them, are neighbours, so that whatever else the
machine does meets both of a pair alike; what is judged is the median over all pairs. A push is slower when it takes the
gateway more CPU, or its provider longer: of the CPU beside reports what as many reports take alone is taken off. Who
reports gives way to who pushes, as the two share the machine with the gateway, which no provider's machine does.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

from bench import instructions, push_load
from bench.wake_latency import Peer
from clients import h2load
from shared import processes

TOPIC = "com.example.bench"
IDENTIFIER = "com.example.bench.export"
TASKS, RATE = 1000, 4
# Pushes are for devices of their own, at a pace that leaves a core to both.
PUSH_CONNECTIONS, PUSHES_PER_SECOND = 10, 100
SLICE_SECONDS = 1.5
# What goes on in the slices of a run: pushes, reports, or both. Which of a pair is first alternates.
SLICES = ("pushes", "both", "reports", "both", "pushes")
PAIRS = ((0, 1), (4, 3))
SLOWDOWN_TARGET = 1.05
LAUNCH_SECONDS = 60
# Under callgrind a gateway is some fifty times slower: so many reports are counted, at its own pace.
COUNTED_TASKS, COUNTED_SECONDS = 100, 2


def token(number: int) -> str:
    return f"{number:064x}"


def answers(peer: Peer, requests: list[tuple[str, str, dict | None]]) -> list[bytes]:
    """The bodies of the answers to requests that are sent one after another; all are to be 2xx."""
    bodies = []
    for method, path, content in requests:
        body = None if content is None else json.dumps(content).encode()
        stream, status, received = peer.request(method, path, [], body), 0, b""
        ended = False
        while not ended:
            for event in peer.parse(peer.receive()):
                if getattr(event, "stream_id", None) != stream:
                    continue
                if headers := getattr(event, "headers", None):
                    status = int(dict(headers)[":status"])
                received += getattr(event, "data", b"") or b""
                ended = ended or type(event).__name__ == "StreamEnded"
            peer.flush()
        if status // 100 != 2:
            raise SystemExit(f"{method} {path} was answered {status}: {received!r}")
        bodies.append(received)
    return bodies


class Tasks:
    """Continued tasks that run, on a stream that is read as long as the block lasts."""

    def __init__(self, gateway: processes.Gateway, count: int):
        self.stream = subprocess.Popen(
            [
                "curl", "-sN", "--http2", "--cacert", gateway.ca, "--noproxy", "*",
                f"https://{gateway.edge}/v1/topics/{TOPIC}/wakes?slots={count}&push=0&task={IDENTIFIER}",
            ],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        peer = Peer(gateway.edge, gateway.ca)
        devices = [token(1_000_000 + number) for number in range(count)]
        for device in devices:
            answers(peer, [
                ("POST", f"/v1/topics/{TOPIC}/devices", {"token": device}),
                ("PATCH", f"/v1/devices/{device}/conditions", {"appState": "active"}),
                ("POST", f"/v1/devices/{device}/tasks", {"identifier": IDENTIFIER, "kind": "continued"}),
            ])  # fmt: skip
        self.wakes: list[str] = []
        deadline = time.monotonic() + LAUNCH_SECONDS
        while len(self.wakes) < count:
            line = self.stream.stdout.readline()
            if not line or time.monotonic() > deadline:
                raise SystemExit(f"{len(self.wakes)} of {count} tasks were launched; the run does not count")
            if found := re.fullmatch(r"id: ([0-9a-f]{32})\n", line):
                self.wakes.append(found.group(1))

    def __enter__(self) -> "Tasks":
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.kill()
        self.stream.wait()


class Reports:
    """A process that reports; ended when the block is left."""

    def __init__(self, gateway: processes.Gateway, wakes: list[str], rate: int):
        settings = json.dumps({"address": gateway.plain, "wakes": wakes, "rate": rate})
        command = ["nice", "-n", "19", sys.executable, "-m", "clients.progress_load", settings]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.line()

    def __enter__(self) -> "Reports":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def line(self) -> str:
        if not (line := self.process.stdout.readline()):
            raise SystemExit("the process that reports progress has ended; the run does not count")
        return line

    def begin(self, seconds: float) -> None:
        self.process.stdin.write(f"go {seconds}\n")
        self.process.stdin.flush()

    def end(self) -> dict:
        result = json.loads(self.line())
        if result["bad"]:
            raise SystemExit(f"not every report was answered 200; the run does not count: {result}")
        return result


@dataclass
class Slice:
    """What a slice has come to: the gateway's CPU, how many reports were answered, and how long each push took."""

    cpu_seconds: float
    reports: int
    report_seconds: float
    milliseconds: list[float]

    @classmethod
    def of(cls, kind: str, folder: str, gateway: processes.Gateway, load: Reports) -> "Slice":
        spent, times, result = processes.cpu_seconds(gateway.pid), [], {"reports": 0, "seconds": 0.0}
        if kind != "pushes":
            load.begin(SLICE_SECONDS)
        if kind != "reports":
            times = pushes(folder, gateway)
        if kind != "pushes":
            result = load.end()
        return cls(processes.cpu_seconds(gateway.pid) - spent, result["reports"], result["seconds"], times)

    def push_microseconds(self, report_seconds: float) -> float:
        """CPU of a push, when a report takes so much."""
        return (self.cpu_seconds - self.reports * report_seconds) / len(self.milliseconds) * 1e6


def pushes(folder: str, gateway: processes.Gateway) -> list[float]:
    """Milliseconds from the sending of each push of a slice to its answer."""
    logs = os.path.join(folder, "logs")
    os.makedirs(logs, exist_ok=True)
    uris, body = os.path.join(folder, "gateway"), os.path.join(folder, "body")
    count = int(PUSH_CONNECTIONS * PUSHES_PER_SECOND * SLICE_SECONDS)
    h2load.run(f"http://{gateway.plain}", uris, body, push_load.headers(), PUSH_CONNECTIONS, 1, count,
               rate=PUSHES_PER_SECOND, logs=logs)  # fmt: skip
    times = []
    for name in os.listdir(logs):
        with open(os.path.join(logs, name), encoding="ascii") as file:
            times += [int(line.split("\t")[2]) / 1000 for line in file]
        os.remove(os.path.join(logs, name))
    return times


def compare(folder: str, gateway: processes.Gateway, runs: int) -> dict:
    with Tasks(gateway, TASKS) as tasks, Reports(gateway, tasks.wakes, RATE) as load:
        # The first slice warms it up.
        Slice.of("both", folder, gateway, load)
        rounds = [[Slice.of(kind, folder, gateway, load) for kind in SLICES] for _ in range(runs)]
    return judge(rounds)


def judge(rounds: list[list[Slice]]) -> dict:
    reporting = [slice for slices in rounds for slice in slices if slice.reports]
    lone = [slice for slice in reporting if not slice.milliseconds]
    report = statistics.median(slice.cpu_seconds / slice.reports for slice in lone)
    pairs = [(slices[alone], slices[beside]) for slices in rounds for alone, beside in PAIRS]
    cpu = [tuple(slice.push_microseconds(report) for slice in pair) for pair in pairs]
    medians = [tuple(statistics.median(slice.milliseconds) for slice in pair) for pair in pairs]
    p90 = [tuple(statistics.quantiles(slice.milliseconds, n=10)[-1] for slice in pair) for pair in pairs]
    cpu_ratio, ratio = median_ratio(cpu), median_ratio(medians)
    return {
        "reports": sum(slice.reports for slice in reporting),
        "reportsPerSecond": round(sum(s.reports for s in reporting) / sum(s.report_seconds for s in reporting)),
        "cpuMicrosecondsPerReport": round(report * 1e6, 1),
        "pushMicroseconds": round(statistics.median(alone for alone, _ in cpu), 1),
        "pushMicrosecondsBeside": round(statistics.median(beside for _, beside in cpu), 1),
        "cpuRatio": round(cpu_ratio, 3),
        "pushMedianMilliseconds": round(statistics.median(alone for alone, _ in medians), 3),
        "pushMedianMillisecondsBeside": round(statistics.median(beside for _, beside in medians), 3),
        "slowdown": round(ratio, 3),
        "pushP90Milliseconds": round(statistics.median(alone for alone, _ in p90), 3),
        "pushP90MillisecondsBeside": round(statistics.median(beside for _, beside in p90), 3),
        "passed": max(cpu_ratio, ratio) <= SLOWDOWN_TARGET,
    }


def median_ratio(pairs: list[tuple[float, float]]) -> float:
    return statistics.median(beside / alone for alone, beside in pairs)


def counted(products: str, folder: str) -> int:
    """Instructions of a durable report, counted by callgrind."""
    count, gateway = instructions.counted(products, folder, "sqlite")

    def run(load: Reports, seconds: float) -> tuple[int, int]:
        count.taken(gateway)
        load.begin(seconds)
        reports = load.end()["reports"]
        return count.taken(gateway), reports

    with gateway, Tasks(gateway, COUNTED_TASKS) as tasks, Reports(gateway, tasks.wakes, RATE) as load:
        # The first run warms it up; of the others, what goes on whatever happens is in both.
        run(load, COUNTED_SECONDS)
        fewer, more = run(load, COUNTED_SECONDS), run(load, 3 * COUNTED_SECONDS)
    return round((more[0] - fewer[0]) / (more[1] - fewer[1]))


def measure(products: str, folder: str, runs: int) -> dict:
    rows = []
    for store in ("memory", "sqlite"):
        place = os.path.join(folder, f"progress-{store}")
        os.mkdir(place)
        push_load.write_inputs(place, PUSH_CONNECTIONS)
        with processes.Gateway(products, place, [], [f"store={store}"]) as gateway:
            row = compare(place, gateway, runs)
        rows.append({"store": store, **row})
    return {"tasks": TASKS, "rate": RATE, "rows": rows, "instructionsPerReport": counted(products, folder)}
