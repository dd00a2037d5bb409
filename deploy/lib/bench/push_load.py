"""CPU microseconds a push: the gateway and nghttpd under the same load, interleaved."""

import os
import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from clients import h2load, steady_load
from shared import interleaved, processes

DEVICES = 10_000
PAYLOAD_BYTES = 228
JWT_BYTES = 184
CONNECTIONS = 100
# A process of the load for each connection up to so many; then they share them.
PROCESSES_MAX = 100


@dataclass(frozen=True)
class Shape:
    """Connections and the streams on each; over TLS how many times what nghttpd takes a push may cost, by store."""

    scheme: str
    connections: int
    streams: int
    targets: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.scheme}, {self.connections:,} connections x {self.streams} streams"


SHAPES = [
    Shape("h2c", 100, 32),
    Shape("h2c", 100, 100),
    Shape("TLS", 100, 100, {"memory": 0.5, "sqlite": 0.65}),
    Shape("TLS", 100, 32, {"memory": 0.5, "sqlite": 0.65}),
    Shape("TLS", 100, 10, {"memory": 0.85, "sqlite": 1.0}),
    Shape("TLS", 100, 1, {"memory": 0.85, "sqlite": 1.2}),
    Shape("TLS", 1000, 10, {"memory": 0.85, "sqlite": 1.0}),
    Shape("TLS", 1, 100, {"memory": 0.85, "sqlite": 1.0}),
]
# Of the shape that is compared with other servers, too.
RATIO_TARGETS = next(shape.targets for shape in SHAPES if (shape.scheme, shape.streams) == ("TLS", 32))


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
    server: processes.Server, base: str, uris: str, folder: str, fields: list[str], streams: int, requests: int,
    connections: int = CONNECTIONS,
) -> float:  # fmt: skip
    """CPU time that the server spent on each request of a run; the load has a core of its own."""
    before = processes.cpu_seconds(server.pid)
    body = os.path.join(folder, "body")
    together = max(1, connections // PROCESSES_MAX)
    h2load.run(base, uris, body, fields, connections, streams, requests, steady_load.LOAD_CORES, together=together)
    return (processes.cpu_seconds(server.pid) - before) / requests * 1e6


def status_without_token(gateway: processes.Gateway) -> int:
    """What a push is answered that shows nothing."""
    fields = ["-H", "apns-topic: com.example.bench", "-d", "{}", "-o", "/dev/null", "-w", "%{http_code}"]
    command = ["curl", "--silent", "--noproxy", "*", "--http2", "--cacert", gateway.ca, *fields]
    url = f"https://{gateway.edge}/3/device/{1:064x}"
    return int(subprocess.run([*command, url], capture_output=True, text=True, check=True).stdout)


def measure(products: str, folder: str, runs: int, requests: int, store: str) -> list[dict]:
    """CPU a push of a gateway over `store`, which lies in `folder`, beside nghttpd's."""
    core = steady_load.SERVER_CORE
    rows = []
    with processes.Gateway(products, folder, core, [f"store={store}"]) as gateway:
        key, certificate = (os.path.join(gateway.state, name) for name in ("server.key", "server.pem"))
        with processes.Nghttpd(folder, core, None) as clear, processes.Nghttpd(folder, core, (key, certificate)) as tls:
            for shape in SHAPES:
                inputs = os.path.join(folder, f"inputs{min(shape.connections, PROCESSES_MAX)}")
                os.makedirs(inputs, exist_ok=True)
                write_inputs(inputs, min(shape.connections, PROCESSES_MAX))
                bases = {
                    "gateway": (
                        gateway, f"http://{gateway.plain}" if shape.scheme == "h2c" else f"https://{gateway.edge}"
                    ),
                    "nghttpd": (clear, f"http://{clear.address}")
                    if shape.scheme == "h2c"
                    else (tls, f"https://{tls.address}"),
                }  # fmt: skip
                sides = {
                    name: partial(sample, server, base, os.path.join(inputs, name), inputs, shape, requests)
                    for name, (server, base) in bases.items()
                }
                rows.append(row(shape, store, interleaved.run(runs, sides)))
    return rows


def sample(
    server: processes.Server, base: str, uris: str, folder: str, shape: Shape, requests: int
) -> interleaved.Sample:
    cost = microseconds(server, base, uris, folder, headers(), shape.streams, requests, shape.connections)
    return {"cpuMicroseconds": cost}


def row(shape: Shape, store: str, samples: dict[str, list[interleaved.Sample]]) -> dict:
    medians = {name: interleaved.medians(values)["cpuMicroseconds"] for name, values in samples.items()}
    ratio = medians["gateway"] / medians["nghttpd"]
    target = shape.targets.get(store)
    return {
        "shape": shape.name,
        "gatewayMicroseconds": medians["gateway"],
        "nghttpdMicroseconds": medians["nghttpd"],
        "ratio": round(ratio, 3),
        "samples": {name: [round(value["cpuMicroseconds"], 3) for value in values] for name, values in samples.items()},
        **({"target": target, "passed": ratio <= target} if target else {}),
    }
