"""The push of every measurement: device tokens, body and fields, as files and options of h2load."""

import base64
import os
import random

from clients import h2load, steady_load

DEVICES = 10_000
PAYLOAD_BYTES = 228
TOKEN_BYTES = 138
CONNECTIONS, STREAMS = 100, 32
TOPIC = "com.example.bench"


def payload() -> bytes:
    start, end = b'{"aps":{"content-available":1},"message":"', b'"}'
    return start + b"m" * (PAYLOAD_BYTES - len(start) - len(end)) + end


def paths(count: int, seed: int) -> list[str]:
    """Returns the paths of pushes to this number of devices, in random order."""
    source = random.Random(seed)
    return [f"/3/device/{source.getrandbits(256):064x}" for _ in range(count)]


def write(folder: str, name: str, asked: list[str], connections: int) -> None:
    """Distributes the paths to the connections, and writes the body of every push."""
    for connection in range(connections):
        with open(os.path.join(folder, f"{name}.{connection}"), "w", encoding="ascii") as file:
            file.writelines(f"https://127.0.0.1{path}\n" for path in asked[connection::connections])
    with open(os.path.join(folder, "body"), "wb") as file:
        file.write(payload())


def write_inputs(folder: str, connections: int = CONNECTIONS) -> None:
    """Writes the paths for the gateway, and for nghttpd, which has one file."""
    write(folder, "gateway", paths(DEVICES, seed=1), connections)
    write(folder, "nghttpd", [path.replace("device/", "device?") for path in paths(DEVICES, seed=1)], connections)


def run(base: str, folder: str, name: str, connections: int, streams: int, requests: int, **more: object) -> float:
    """Sends the pushes that were written under a name, with `h2load.run`."""
    files = (os.path.join(folder, name), os.path.join(folder, "body"))
    return h2load.run(base, *files, headers(), connections, streams, requests, **more)


def steady(base: str, folder: str, name: str, **shape: object) -> steady_load.Load:
    """Returns the same pushes as a load for a limited time."""
    shape = {"connections": CONNECTIONS, "streams": STREAMS, "headers": headers(), **shape}
    return steady_load.Load(base, os.path.join(folder, name), os.path.join(folder, "body"), **shape)


def headers(topic: str = TOPIC) -> list[str]:
    """Returns the fields of each push as arguments of h2load. The gateway does not check `authorization`."""
    fields = {
        # As long as a provider token, and of the same letters and digits.
        "authorization": f"bearer {base64.urlsafe_b64encode(random.Random(2).randbytes(TOKEN_BYTES)).decode()}",
        "apns-topic": topic,
        "apns-push-type": "background",
        "apns-priority": "5",
        "apns-expiration": "1999999999",
    }
    return [word for name, value in fields.items() for word in ("-H", f"{name}: {value}")]
