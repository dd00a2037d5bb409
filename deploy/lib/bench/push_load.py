"""CPU microseconds a push: the gateway and nghttpd under the same load, interleaved."""

import os
import random
import subprocess
from collections.abc import Callable
from functools import partial

from clients import h2load, steady_load
from shared import interleaved, processes

DEVICES = 10_000
PAYLOAD_BYTES = 228
JWT_BYTES = 184
CONNECTIONS = 100
# Over TLS: what a push may cost beside what nghttpd takes, kept in memory and kept on disk.
RATIO_TARGET = 1.0
DURABLE_RATIO_TARGET = 1.3
SHAPES = [(scheme, streams) for scheme in ("h2c", "TLS") for streams in (32, 100)]


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


def random_token(source: random.Random) -> str:
    return f"{source.getrandbits(256):064x}"


def write_pushes(
    folder: str, name: str, devices: int, connections: int, seed: int,
    token: Callable[[random.Random], str] = random_token,
) -> None:  # fmt: skip
    """The paths of pushes to so many devices, in no order, dealt out to the connections; and their body."""
    source = random.Random(seed)
    h2load.write_paths(folder, name, [f"/3/device/{token(source)}" for _ in range(devices)], connections)
    with open(os.path.join(folder, "body"), "wb") as file:
        file.write(payload())


def headers(authorization: str | None = None) -> list[str]:
    """The fields of each push, as arguments; `authorization` is one that nobody checks unless it is given."""
    fields = {
        "authorization": authorization or f"bearer {unchecked_token()}",
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


def status_without_token(gateway: processes.Gateway) -> int:
    """What a push is answered that shows nothing."""
    fields = ["-H", "apns-topic: com.example.bench", "-d", "{}", "-o", "/dev/null", "-w", "%{http_code}"]
    command = ["curl", "--silent", "--noproxy", "*", "--http2", "--cacert", gateway.ca, *fields]
    url = f"https://{gateway.edge}/3/device/{1:064x}"
    return int(subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout)


def measure(products: str, folder: str, runs: int, requests: int, store: str, target: float) -> list[dict]:
    """CPU a push of a gateway over `store`, which lies in `folder`; over TLS at most `target` times that of nghttpd."""
    write_inputs(folder)
    core = steady_load.SERVER_CORE
    rows = []
    with processes.Gateway(products, folder, core, [f"store={store}"]) as gateway:
        key, certificate = (os.path.join(gateway.state, name) for name in ("server.key", "server.pem"))
        with processes.Nghttpd(folder, core, None) as clear, processes.Nghttpd(folder, core, (key, certificate)) as tls:
            for scheme, streams in SHAPES:
                bases = {
                    "gateway": (gateway, f"http://{gateway.plain}" if scheme == "h2c" else f"https://{gateway.edge}"),
                    "nghttpd": (clear, f"http://{clear.address}")
                    if scheme == "h2c"
                    else (tls, f"https://{tls.address}"),
                }
                sides = {
                    name: partial(sample, server, base, os.path.join(folder, name), folder, streams, requests)
                    for name, (server, base) in bases.items()
                }
                rows.append(row(scheme, streams, interleaved.run(runs, sides), target))
    return rows


def sample(
    server: processes.Server, base: str, uris: str, folder: str, streams: int, requests: int
) -> interleaved.Sample:
    return {"cpuMicroseconds": microseconds(server, base, uris, folder, headers(), streams, requests)}


def row(scheme: str, streams: int, samples: dict[str, list[interleaved.Sample]], target: float) -> dict:
    medians = {name: interleaved.medians(values)["cpuMicroseconds"] for name, values in samples.items()}
    ratio = medians["gateway"] / medians["nghttpd"]
    return {
        "shape": f"{scheme}, {CONNECTIONS} connections x {streams} streams",
        "gatewayMicroseconds": medians["gateway"],
        "nghttpdMicroseconds": medians["nghttpd"],
        "ratio": round(ratio, 3),
        "samples": {name: [round(value["cpuMicroseconds"], 3) for value in values] for name, values in samples.items()},
        **({"target": target, "passed": ratio <= target} if scheme == "TLS" else {}),
    }
