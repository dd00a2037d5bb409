"""Wakes a second to a webhook, from the push to the result in the books, and what each costs the gateway."""

import json
import os
import random
import statistics
import time
import urllib.request

from bench import push_load
from clients import h2load
from shared import processes

WAKES_PER_SECOND_TARGET = 5000
TOPIC = "com.example.bench"
CONNECTIONS = 10
STREAMS = 32
SLOTS = 256
WAIT_SECONDS = 120


def stats(gateway: processes.Gateway) -> dict:
    with urllib.request.urlopen(f"http://{gateway.admin}/v1/stats", timeout=10) as answer:
        return json.load(answer)


def wait_for(gateway: processes.Gateway, completed: int) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while (now := stats(gateway))["pushes"]["completed"] < completed:
        if time.monotonic() > deadline:
            gateway.fail(f"{now['pushes']['completed']} of {completed} pushes were completed")
        time.sleep(0.01)


def secret(folder: str) -> str:
    path = os.path.join(folder, "secret")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
        file.write("0123456789abcdef" * 4)
    return path


def measure(products: str, folder: str, runs: int, wakes: int) -> dict:
    """Every push is for a device of its own, so that each is a wake; nghttpd answers with the result.

    Nothing is pinned: the gateway's loops, engine, store and webhooks have a thread each.
    """
    wakes -= wakes % CONNECTIONS
    os.makedirs(os.path.join(folder, "files"))
    for name, content in (("body", push_load.payload()), (os.path.join("files", "wakes"), b'{"result":"newData"}')):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    with processes.Gateway(products, folder, [], []) as first:
        key, certificate = (os.path.join(first.state, name) for name in ("server.key", "server.pem"))
        authority = first.ca
    source = random.Random(3)
    rates, costs, peer_costs = [], [], []
    with processes.Nghttpd(folder, [], (key, certificate)) as receiver:
        hook = {
            "url": f"https://{receiver.address}/wakes", "ca": authority, "secretFile": secret(folder), "slots": SLOTS,
            "allowPrivate": True,
        }  # fmt: skip
        settings = [f"topics.{TOPIC}.webhook={json.dumps(hook)}"]
        with processes.Gateway(products, folder, [], settings) as gateway:
            for run in range(runs + 1):
                paths = [f"/3/device/{source.getrandbits(256):064x}" for _ in range(wakes)]
                h2load.write_paths(folder, "paths", paths, CONNECTIONS)
                uris, body = os.path.join(folder, "paths"), os.path.join(folder, "body")
                before = [processes.cpu_seconds(server.pid) for server in (gateway, receiver)]
                started = time.monotonic()
                base = f"https://{gateway.edge}"
                h2load.run(base, uris, body, push_load.headers(), CONNECTIONS, STREAMS, wakes)
                wait_for(gateway, (run + 1) * wakes)
                seconds = time.monotonic() - started
                spent = [processes.cpu_seconds(server.pid) for server in (gateway, receiver)]
                # The first makes the connection and warms the caches, and does not count.
                if run > 0:
                    rates.append(wakes / seconds)
                    costs.append((spent[0] - before[0]) / wakes * 1e6)
                    peer_costs.append((spent[1] - before[1]) / wakes * 1e6)
            books = stats(gateway)
    rate = statistics.median(rates)
    lost = sum(books["wakes"]["results"][name] for name in ("failed", "expired", "lost"))
    return {
        "wakes": wakes,
        "wakesPerSecond": round(rate),
        "gatewayMicroseconds": round(statistics.median(costs), 2),
        "receiverMicroseconds": round(statistics.median(peer_costs), 2),
        "lost": lost,
        "samples": {"wakesPerSecond": [round(value) for value in rates]},
        "passed": rate >= WAKES_PER_SECOND_TARGET and lost == 0,
    }
