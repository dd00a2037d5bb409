"""A thousand continued tasks that report their progress four times a second: CPU a report, and what pushes notice of it.

Pushes at a steady pace are timed in rounds, with the reports and without them by turns, so that whatever else the
machine does meets both alike.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time

from bench import instructions, push_load
from bench.wake_latency import Peer
from clients import h2load
from shared import processes

TOPIC = "com.example.bench"
IDENTIFIER = "com.example.bench.export"
TASKS, RATE = 1000, 4
# Pushes are for devices of their own, at a pace that leaves a core to both.
PUSH_CONNECTIONS, PUSHES_PER_SECOND = 10, 50
ROUND_SECONDS = 10
SLOWDOWN_TARGET = 1.05
LAUNCH_SECONDS = 60
# Under callgrind a gateway is some fifty times slower: so many reports are counted, at its own pace.
COUNTED_TASKS, COUNTED_SECONDS = 100, 5


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
        command = [sys.executable, "-m", "clients.progress_load", settings]
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


def pushes(folder: str, gateway: processes.Gateway) -> list[float]:
    """Milliseconds from the sending of each push of a round to its answer."""
    logs = os.path.join(folder, "logs")
    os.makedirs(logs, exist_ok=True)
    uris, body = os.path.join(folder, "gateway"), os.path.join(folder, "body")
    h2load.run(f"http://{gateway.plain}", uris, body, push_load.headers(), PUSH_CONNECTIONS, 1,
               PUSH_CONNECTIONS * PUSHES_PER_SECOND * ROUND_SECONDS, rate=PUSHES_PER_SECOND, logs=logs)  # fmt: skip
    times = []
    for name in os.listdir(logs):
        with open(os.path.join(logs, name), encoding="ascii") as file:
            times += [int(line.split("\t")[2]) / 1000 for line in file]
        os.remove(os.path.join(logs, name))
    return times


def compare(folder: str, gateway: processes.Gateway, runs: int) -> dict:
    """Rounds of pushes with and without the reports, by turns."""
    alone, beside, with_reports, without = [], [], [], []
    reports, seconds = 0, 0.0
    with Tasks(gateway, TASKS) as tasks, Reports(gateway, tasks.wakes, RATE) as load:
        for _ in range(runs):
            spent = processes.cpu_seconds(gateway.pid)
            alone.append(pushes(folder, gateway))
            without.append(processes.cpu_seconds(gateway.pid) - spent)
            spent = processes.cpu_seconds(gateway.pid)
            load.begin(ROUND_SECONDS)
            beside.append(pushes(folder, gateway))
            result = load.end()
            with_reports.append(processes.cpu_seconds(gateway.pid) - spent)
            reports, seconds = reports + result["reports"], seconds + result["seconds"]
    return {
        "reports": reports,
        "reportsPerSecond": round(reports / seconds),
        "cpuMicrosecondsPerReport": round((sum(with_reports) - sum(without)) / reports * 1e6, 1),
        "pushMedianMilliseconds": round(statistics.median(map(statistics.median, alone)), 3),
        "pushMedianMillisecondsBeside": round(statistics.median(map(statistics.median, beside)), 3),
        "pushP90Milliseconds": round(statistics.median(quantile(times) for times in alone), 3),
        "pushP90MillisecondsBeside": round(statistics.median(quantile(times) for times in beside), 3),
    }


def quantile(times: list[float]) -> float:
    return statistics.quantiles(times, n=10)[-1]


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
        ratio = row["pushMedianMillisecondsBeside"] / row["pushMedianMilliseconds"]
        rows.append({"store": store, **row, "slowdown": round(ratio, 3), "passed": ratio <= SLOWDOWN_TARGET})
    return {"tasks": TASKS, "rate": RATE, "rows": rows, "instructionsPerReport": counted(products, folder)}
