"""A thousand continued tasks that report their progress four times a second: CPU a report, and what pushes notice of it.

Short slices of pushes at an easy pace, with the reports and without them, are neighbours, so that whatever else the
machine does meets both of a pair alike; what is judged is the median over all pairs. A push is slower when it takes the
gateway more CPU, or its provider longer: of the CPU beside reports what as many reports take alone is taken off.

Who reports shares the machine with the gateway and with who pushes, which no provider's machine does. It gives way to
both, and how much longer a push takes for its sake is measured: in a third kind of slice the same process sends the same
reports at the same pace to nghttpd, which does nothing with them. What pushes lose there is who reports and nghttpd, by
the CPU of each, and the part of who reports alone is no fault of the gateway's: as much, for no more CPU than it took
beside the gateway, may a push take longer. What a server does to take reports and to answer them is not excused: of
nghttpd's part nothing is taken off. Where a push is quicker there than alone, since the machine sleeps less, so must it
be beside the gateway.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
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
# What goes on in the slices of a run: pushes alone, while the same reports go elsewhere, with reports; or reports alone.
SLICES = ("pushes", "elsewhere", "both", "reports", "both", "elsewhere", "pushes")
# Which of them are compared, alone, elsewhere and both; which of these is first alternates.
TRIPLES = ((0, 1, 2), (6, 5, 4))
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

    def __init__(self, address: str, wakes: list[str], rate: int):
        settings = json.dumps({"address": address, "wakes": wakes, "rate": rate})
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
class Bench:
    """What takes part: the gateway, and nghttpd with who reports to each."""

    folder: str
    gateway: processes.Gateway
    idle_server: processes.Nghttpd
    load: Reports
    load_elsewhere: Reports

    def load_of(self, kind: str) -> Reports | None:
        return {"pushes": None, "elsewhere": self.load_elsewhere}.get(kind, self.load)


@dataclass
class Slice:
    """What a slice has come to: CPU of the gateway, of nghttpd and of who reports, how many reports were answered, and
    how long each push took."""

    cpu_seconds: float
    idle_server_cpu_seconds: float
    load_cpu_seconds: float
    reports: int
    report_seconds: float
    milliseconds: list[float]

    @classmethod
    def of(cls, kind: str, bench: Bench) -> "Slice":
        load = bench.load_of(kind)
        pids = [bench.gateway.pid, bench.idle_server.pid, *([load.process.pid] if load else [])]
        spent = [processes.cpu_seconds(pid) for pid in pids]
        times, result = [], {"reports": 0, "seconds": 0.0}
        if load:
            load.begin(SLICE_SECONDS)
        if kind != "reports":
            times = pushes(bench.folder, bench.gateway)
        if load:
            result = load.end()
        gateway, idle_server, *loads = [processes.cpu_seconds(pid) - before for pid, before in zip(pids, spent)]
        return cls(gateway, idle_server, sum(loads), result["reports"], result["seconds"], times)

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def p90(self) -> float:
        return statistics.quantiles(self.milliseconds, n=10)[-1]

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
    with Tasks(gateway, TASKS) as tasks, idle_server(folder, tasks.wakes) as other:
        with Reports(gateway.plain, tasks.wakes, RATE) as load, Reports(other.address, tasks.wakes, RATE) as elsewhere:
            bench = Bench(folder, gateway, other, load, elsewhere)
            # The first slices warm it up.
            for kind in ("both", "elsewhere"):
                Slice.of(kind, bench)
            rounds = [[Slice.of(kind, bench) for kind in SLICES] for _ in range(runs)]
    return judge(rounds)


def idle_server(folder: str, wakes: list[str]) -> processes.Nghttpd:
    """nghttpd that answers reports of these wakes 200, from empty files."""
    for wake in wakes:
        os.makedirs(os.path.join(folder, "files", "v1", "wakes", wake))
        with open(os.path.join(folder, "files", "v1", "wakes", wake, "progress"), "wb"):
            pass
    return processes.Nghttpd(folder, [], None)


def allowed(alone: Slice, elsewhere: Slice, both: Slice) -> float:
    """How long the median push may take beside reports, but for what the target allows, in milliseconds: as long as
    alone, and longer by what who reports costs it."""
    cpu = elsewhere.load_cpu_seconds + elsewhere.idle_server_cpu_seconds
    share = min(elsewhere.load_cpu_seconds, both.load_cpu_seconds) / cpu
    return alone.median + (elsewhere.median - alone.median) * share


def judge(rounds: list[list[Slice]]) -> dict:
    triples = [tuple(slices[place] for place in triple) for slices in rounds for triple in TRIPLES]
    lone = [slices[SLICES.index("reports")] for slices in rounds]
    reporting = lone + [both for _, _, both in triples]
    report = statistics.median(slice.cpu_seconds / slice.reports for slice in lone)
    cpu = [(alone.push_microseconds(report), both.push_microseconds(report)) for alone, _, both in triples]
    cpu_ratio = statistics.median(beside / alone for alone, beside in cpu)
    ratio = statistics.median(both.median / allowed(alone, elsewhere, both) for alone, elsewhere, both in triples)
    alone, elsewhere, beside = zip(*triples)
    return {
        "reports": sum(slice.reports for slice in reporting),
        "reportsPerSecond": round(sum(s.reports for s in reporting) / sum(s.report_seconds for s in reporting)),
        "cpuMicrosecondsPerReport": round(report * 1e6, 1),
        "pushMicroseconds": round(statistics.median(alone for alone, _ in cpu), 1),
        "pushMicrosecondsBeside": round(statistics.median(beside for _, beside in cpu), 1),
        "cpuRatio": round(cpu_ratio, 3),
        "pushMedianMilliseconds": middle(slice.median for slice in alone),
        "pushMedianMillisecondsElsewhere": middle(slice.median for slice in elsewhere),
        "pushMedianMillisecondsBeside": middle(slice.median for slice in beside),
        "ofAlone": middle(both.median / alone.median for alone, _, both in triples),
        "slowdown": round(ratio, 3),
        "pushP90Milliseconds": middle(slice.p90 for slice in alone),
        "pushP90MillisecondsElsewhere": middle(slice.p90 for slice in elsewhere),
        "pushP90MillisecondsBeside": middle(slice.p90 for slice in beside),
        "passed": max(cpu_ratio, ratio) <= SLOWDOWN_TARGET,
    }


def middle(values: Iterable[float]) -> float:
    return round(statistics.median(values), 3)


def counted(products: str, folder: str) -> int:
    """Instructions of a durable report, counted by callgrind."""
    count, gateway = instructions.counted(products, folder, "sqlite")

    def run(load: Reports, seconds: float) -> tuple[int, int]:
        count.taken(gateway)
        load.begin(seconds)
        reports = load.end()["reports"]
        return count.taken(gateway), reports

    with gateway, Tasks(gateway, COUNTED_TASKS) as tasks, Reports(gateway.plain, tasks.wakes, RATE) as load:
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
