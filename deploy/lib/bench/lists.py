"""How long the lists of devices and pushes take to answer, page by page, with a hundred thousand devices."""

import http.client
import json
import os
import random
import statistics
import time

from bench import push_load
from clients import h2load
from shared import processes

DEVICES = 100_000
MILLISECONDS_TARGET = 100
PAGE = 1000
CONNECTIONS, STREAMS = 16, 100
# One device of so many is low on battery: what a page finds lies far apart.
LOW_BATTERY_EVERY = 1000
TOPIC = "com.example.bench"

# What is asked: both lists whole, and what few or none are found by.
QUESTIONS = {
    "all devices": "/v1/devices?",
    "devices of a topic": f"/v1/devices?topic={TOPIC}&",
    "devices that are held": "/v1/devices?state=held&",
    "devices whose push waits for its time": "/v1/devices?state=pending&",
    "devices held by battery": "/v1/devices?hold=battery&",
    "devices of a topic without any": "/v1/devices?topic=com.example.none&",
    "all pushes": "/v1/pushes?",
    "pushes of a topic": f"/v1/pushes?topic={TOPIC}&",
    "pushes that have expired": "/v1/pushes?outcome=expired&",
}


def low_on_battery(gateway: processes.Gateway, tokens: list[str]) -> None:
    host, port = gateway.plain.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port))
    conditions = json.dumps({"batteryLevel": 0.05, "charging": False})
    for token in tokens:
        connection.request("PATCH", f"/v1/devices/{token}/conditions", conditions)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"deploy/bench: a device's conditions were answered {answer.status} {body!r}")
    connection.close()


def pages(connection: http.client.HTTPConnection, path: str) -> dict:
    """Reads a list to its end; the times of its answers in milliseconds, and how many rows they had."""
    times, rows, after = [], 0, None
    while True:
        started = time.perf_counter()
        connection.request("GET", f"{path}limit={PAGE}" + (f"&after={after}" if after else ""))
        answer = connection.getresponse()
        body = answer.read()
        times.append((time.perf_counter() - started) * 1000)
        if answer.status != 200:
            raise SystemExit(f"deploy/bench: {path} was answered {answer.status} {body!r}")
        page = json.loads(body)
        rows += len(page["devices"] if "devices" in page else page["pushes"])
        after = page["next"]
        if after is None:
            return {"pages": len(times), "rows": rows, "p50": statistics.median(times), "worst": max(times)}


def measure(products: str, folder: str) -> dict:
    push_load.write_pushes(folder, "uris", DEVICES, CONNECTIONS, seed=5)
    source = random.Random(5)
    # The first of those that are pushed to: they are drawn in the same order.
    others = [push_load.random_token(source) for _ in range(DEVICES // LOW_BATTERY_EVERY)]
    with processes.Gateway(products, folder, [], ["store=sqlite"]) as gateway:
        uris, body = os.path.join(folder, "uris"), os.path.join(folder, "body")
        h2load.run(f"http://{gateway.plain}", uris, body, push_load.headers(), CONNECTIONS, STREAMS, DEVICES)
        low_on_battery(gateway, others)
        host, port = gateway.admin.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port))
        rows = [{"question": name, **pages(connection, path)} for name, path in QUESTIONS.items()]
        connection.close()
    worst = max(row["worst"] for row in rows)
    return {"devices": DEVICES, "rows": rows, "worst": round(worst, 1), "passed": worst < MILLISECONDS_TARGET}
