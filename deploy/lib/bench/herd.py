"""A herd: a million devices whose wakes are due at one instant, delivered and answered durably through 50 streams.

Their pushes wait while their topic is paused and the workers are connected. The measured time begins when the topic is
resumed and ends with the answer to the last result. The cost of a POST of nghttpd on the same core shows the speed of
the machine.
"""

import argparse
import os
import time

import httpx

from bench import push_load
from bench.tables import Table
from clients import steady_load
from clients.fleet_process import FleetProcess
from shared import interleaved, processes

DEVICES = 1_000_000
STREAMS, SLOTS = 50, 100
CONNECTIONS, IN_FLIGHT = 16, 100
SECONDS_TARGET = 8.0
MICROSECONDS_TARGET = 6.0
RUNS_MAX = 3
WAIT_SECONDS = 300
NGHTTPD_STREAMS, NGHTTPD_REQUESTS = 100, 200_000


def switch(gateway: processes.Gateway, verb: str) -> None:
    """Pauses or resumes the topic."""
    path = f"/v1/topics/{push_load.TOPIC}/{verb}"
    answer = httpx.post(f"http://{gateway.admin}{path}", timeout=WAIT_SECONDS, trust_env=False)
    if answer.status_code != 200:
        raise SystemExit(f"deploy/bench: to {verb} the topic was answered {answer.status_code} {answer.text}")


def run(products: str, folder: str, number: int) -> interleaved.Sample:
    """Measures each run with a new gateway, because devices that were woken once have used up their budget."""
    place = os.path.join(folder, str(number))
    os.mkdir(place)
    with processes.Gateway(products, place, steady_load.SERVER_CORE, ["store=sqlite"]) as gateway:
        base, cores = f"http://{gateway.plain}", steady_load.LOAD_CORES
        push_load.run(base, folder, "uris", CONNECTIONS, IN_FLIGHT, DEVICES, prefix=cores)
        switch(gateway, "pause")
        fleet = FleetProcess(place, gateway.plain, push_load.TOPIC, STREAMS, slots=SLOTS, prefix=tuple(cores))
        with fleet as workers:
            started, spent = time.monotonic(), processes.cpu_seconds(gateway.pid)
            switch(gateway, "resume")
            workers.wait_for(DEVICES)
            seconds = time.monotonic() - started
            spent = processes.cpu_seconds(gateway.pid) - spent
    return {"seconds": seconds, "cpuMicroseconds": spent / DEVICES * 1e6}


def nghttpd(folder: str) -> float:
    """Returns the CPU microseconds of a POST of nghttpd in cleartext."""
    push_load.write_inputs(folder)
    with processes.Nghttpd(folder, steady_load.SERVER_CORE, None) as server:
        before, base = processes.cpu_seconds(server.pid), f"http://{server.address}"
        shape = (push_load.CONNECTIONS, NGHTTPD_STREAMS, NGHTTPD_REQUESTS)
        push_load.run(base, folder, "nghttpd", *shape, prefix=steady_load.LOAD_CORES)
        return (processes.cpu_seconds(server.pid) - before) / NGHTTPD_REQUESTS * 1e6


def measure(options: argparse.Namespace, folder: str) -> list[Table]:
    push_load.write(folder, "uris", push_load.paths(DEVICES, seed=7), CONNECTIONS)
    samples, anchors = [], []
    for number in range(min(options.runs, RUNS_MAX)):
        anchor = os.path.join(folder, f"nghttpd{number}")
        os.mkdir(anchor)
        anchors.append({"cpuMicroseconds": nghttpd(anchor)})
        samples.append(run(options.products, folder, number))
    middle = interleaved.medians(samples)
    title = f"{DEVICES:,} wakes due at one instant, durable, through {STREAMS} streams, one core, h2c"
    table = Table(title, ["", "", "at most", ""], [])
    for figure, value, target in (
        ("seconds until all are answered", middle["seconds"], SECONDS_TARGET),
        ("CPU us a wake with its result", middle["cpuMicroseconds"], MICROSECONDS_TARGET),
    ):
        table.rows.append([figure, f"{value:.2f}", f"{target:g}", table.target(value <= target)])
    anchor = interleaved.medians(anchors)["cpuMicroseconds"]
    table.notes.append(
        f"{DEVICES / middle['seconds']:,.0f} a second; in the same run a POST costs nghttpd {anchor:.2f} us"
    )
    return [table]
