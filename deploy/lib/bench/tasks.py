"""Requests of background tasks: submitted and launched, a second and in CPU; and what those of a fleet take to keep."""

import json
import os
import signal
import time
import urllib.request

from bench import push_load
from bench.million import megabytes
from bench.streams import CONNECT_SECONDS, FleetProcess
from clients import h2load
from shared import processes

TOPIC = "com.example.bench"
IDENTIFIER = "com.example.bench.refresh"
REQUESTS = 100_000
# A million devices, of which a tenth has a request.
FLEET, FLEET_REQUESTS = 1_000_000, 100_000
CONNECTIONS, STREAMS = 10, 32
WORKERS, SLOTS = 50, 100
# How long the launches of all requests may take before the run does not count.
LAUNCH_SECONDS = 120


def tasks(gateway: processes.Gateway) -> dict:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{gateway.admin}/v1/stats") as answer:
        return json.load(answer)["tasks"]


def write_inputs(folder: str, devices: int, requests: int) -> None:
    """Pushes that register each device, and requests of the first of them, with their bodies."""
    tokens = [f"{number:064x}" for number in range(devices)]
    h2load.write_paths(folder, "devices", [f"/3/device/{token}" for token in tokens], CONNECTIONS)
    h2load.write_paths(folder, "requests", [f"/v1/devices/{token}/tasks" for token in tokens[:requests]], CONNECTIONS)
    with open(os.path.join(folder, "push"), "wb") as file:
        file.write(push_load.payload())
    with open(os.path.join(folder, "request"), "w", encoding="ascii") as file:
        json.dump({"identifier": IDENTIFIER, "kind": "appRefresh"}, file)


def register(folder: str, gateway: processes.Gateway, devices: int) -> None:
    """A push that is to launch now or never registers its device, and leaves nothing else."""
    now_or_never = [word.replace("1999999999", "0") for word in push_load.headers()]
    uris, body = os.path.join(folder, "devices"), os.path.join(folder, "push")
    h2load.run(f"http://{gateway.plain}", uris, body, now_or_never, CONNECTIONS, 100, devices)


def submit(folder: str, gateway: processes.Gateway, requests: int) -> tuple[float, float]:
    """Submits the requests; how many a second, and microseconds of CPU each."""
    spent = processes.cpu_seconds(gateway.pid)
    uris, body = os.path.join(folder, "requests"), os.path.join(folder, "request")
    took = h2load.run(f"http://{gateway.plain}", uris, body, [], CONNECTIONS, STREAMS, requests)
    spent = processes.cpu_seconds(gateway.pid) - spent
    return requests / took, spent / requests * 1e6


def launch(gateway: processes.Gateway, requests: int) -> tuple[float, float]:
    """Has workers take every request that waits; launches a second, and microseconds of CPU each."""
    started, spent = time.monotonic(), processes.cpu_seconds(gateway.pid)
    with FleetProcess(address=gateway.edge, ca=gateway.ca, topic=TOPIC, connections=WORKERS, slots=SLOTS,
                      by_device=False, task=IDENTIFIER) as fleet:  # fmt: skip
        fleet.next("subscribed", CONNECT_SECONDS)
        deadline = time.monotonic() + LAUNCH_SECONDS
        while tasks(gateway)["results"]["success"] < requests:
            if time.monotonic() > deadline:
                raise SystemExit(f"not every request was launched; the run does not count: {tasks(gateway)}")
            time.sleep(0.05)
    took = time.monotonic() - started
    return requests / took, (processes.cpu_seconds(gateway.pid) - spent) / requests * 1e6


def rates(products: str, folder: str, store: str) -> dict:
    folder = os.path.join(folder, f"tasks-{store}")
    os.mkdir(folder)
    write_inputs(folder, REQUESTS, REQUESTS)
    with processes.Gateway(products, folder, [], [f"store={store}"]) as gateway:
        register(folder, gateway, REQUESTS)
        submitted, submission = submit(folder, gateway, REQUESTS)
        launched, launching = launch(gateway, REQUESTS)
    return {
        "store": store,
        "requests": REQUESTS,
        "submissionsPerSecond": round(submitted),
        "cpuMicrosecondsPerSubmission": round(submission, 1),
        "launchesPerSecond": round(launched),
        "cpuMicrosecondsPerLaunch": round(launching, 1),
    }


def kept(products: str, folder: str) -> dict:
    """Memory and the start of a fleet before and after a tenth of it has submitted a request."""
    folder = os.path.join(folder, "tasks-fleet")
    os.mkdir(folder)
    write_inputs(folder, FLEET, FLEET_REQUESTS)
    with processes.Gateway(products, folder, [], ["store=sqlite"]) as gateway:
        register(folder, gateway, FLEET)
        without = processes.resident_megabytes(gateway.pid)
        submit(folder, gateway, FLEET_REQUESTS)
        with_requests = processes.resident_megabytes(gateway.pid)
        journal = megabytes(gateway.state, "journal")
        gateway.process.send_signal(signal.SIGKILL)
        gateway.process.wait()
    started = time.monotonic()
    with processes.Gateway(products, folder, [], ["store=sqlite"]) as gateway:
        ready = time.monotonic() - started
        again, waiting = processes.resident_megabytes(gateway.pid), tasks(gateway)["waiting"]
    return {
        "devices": FLEET,
        "requests": FLEET_REQUESTS,
        "residentMegabytes": round(without),
        "residentMegabytesWithRequests": round(with_requests),
        "bytesPerRequest": round((with_requests - without) * 1e6 / FLEET_REQUESTS),
        "journalMegabytes": round(journal),
        "readySeconds": round(ready, 2),
        "residentMegabytesAfterRestart": round(again),
        "passed": waiting == FLEET_REQUESTS,
    }


def measure(products: str, folder: str) -> dict:
    return {
        "rates": [rates(products, folder, store) for store in ("memory", "sqlite")],
        "fleet": kept(products, folder),
    }
