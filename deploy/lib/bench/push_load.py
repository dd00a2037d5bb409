"""The push that every measurement sends: its device tokens, its body and its fields, as files and options of h2load."""

import os
import random

from clients import h2load, steady_load
from shared import processes

DEVICES = 10_000
PAYLOAD_BYTES = 228
JWT_BYTES = 184
CONNECTIONS = 100


def payload() -> bytes:
    start, end = b'{"aps":{"content-available":1},"message":"', b'"}'
    return start + b"m" * (PAYLOAD_BYTES - len(start) - len(end)) + end


def write_inputs(folder: str, connections: int = CONNECTIONS) -> None:
    source = random.Random(1)
    tokens = ["%064x" % source.getrandbits(256) for _ in range(DEVICES)]
    for name, separator in (("gateway", "/"), ("nghttpd", "?")):
        h2load.write_paths(folder, name, [f"/3/device{separator}{token}" for token in tokens], connections)
    with open(os.path.join(folder, "body"), "wb") as file:
        file.write(payload())


def write_pushes(folder: str, name: str, devices: int, connections: int, seed: int) -> None:
    """The paths of pushes to so many devices, in no order, dealt out to the connections; and their body."""
    source = random.Random(seed)
    h2load.write_paths(folder, name, [f"/3/device/{source.getrandbits(256):064x}" for _ in range(devices)], connections)
    with open(os.path.join(folder, "body"), "wb") as file:
        file.write(payload())


def headers() -> list[str]:
    """The fields of each push, as arguments of h2load. The gateway does not check `authorization`."""
    fields = {
        "authorization": f"bearer {unchecked_token()}",
        "apns-topic": "com.example.bench",
        "apns-push-type": "background",
        "apns-priority": "5",
        "apns-expiration": "1999999999",
    }
    return [word for name, value in fields.items() for word in ("-H", f"{name}: {value}")]


def unchecked_token() -> str:
    # Shaped like a provider token: 184 letters and digits in three parts.
    source = random.Random(2)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
    parts = ["".join(source.choice(letters) for _ in range(count)) for count in (54, 42, 86)]
    token = ".".join(parts)
    assert len(token) == JWT_BYTES
    return token


def microseconds(
    server: processes.Server, base: str, uris: str, folder: str, fields: list[str], streams: int, requests: int
) -> float:
    """CPU time that the server spent on each request of a run; the load has a core of its own."""
    before = processes.cpu_seconds(server.pid)
    body = os.path.join(folder, "body")
    h2load.run(base, uris, body, fields, CONNECTIONS, streams, requests, steady_load.LOAD_CORES)
    return (processes.cpu_seconds(server.pid) - before) / requests * 1e6
