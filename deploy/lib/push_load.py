"""CPU microseconds a push: the gateway and nghttpd under the same load, interleaved."""

import os
import random
import statistics

import h2load
import processes

DEVICES = 10_000
PAYLOAD_BYTES = 228
JWT_BYTES = 184
CONNECTIONS = 100
RATIO_TARGET = 1.3
SHAPES = [(scheme, CONNECTIONS, streams) for scheme in ("h2c", "TLS") for streams in (32, 100)]


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


def headers() -> list[str]:
    # Shaped like a provider token: 184 letters and digits in three parts. Neither side checks it.
    source = random.Random(2)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
    parts = ["".join(source.choice(letters) for _ in range(count)) for count in (54, 42, 86)]
    token = ".".join(parts)
    assert len(token) == JWT_BYTES
    fields = {
        "authorization": f"bearer {token}",
        "apns-topic": "com.example.bench",
        "apns-push-type": "background",
        "apns-priority": "5",
        "apns-expiration": "1999999999",
    }
    return [word for name, value in fields.items() for word in ("-H", f"{name}: {value}")]


def measure(products: str, folder: str, runs: int, requests: int, store: str, target: float) -> list[dict]:
    """CPU a push of a gateway over `store`, which lies in `folder`; at most `target` times that of nghttpd."""
    write_inputs(folder)
    server_core, load_core = ["taskset", "-c", "0"], ["taskset", "-c", "1"]
    rows = []
    with processes.Gateway(products, folder, server_core, [f"store={store}"]) as gateway:
        key, certificate = (os.path.join(gateway.state, name) for name in ("server.key", "server.pem"))
        with processes.Nghttpd(folder, server_core, None) as clear, \
                processes.Nghttpd(folder, server_core, (key, certificate)) as tls:  # fmt: skip
            for scheme, connections, streams in SHAPES:
                peer = clear if scheme == "h2c" else tls
                prefix = "http" if scheme == "h2c" else "https"
                sides = {
                    "gateway": (gateway, f"{prefix}://{gateway.plain if scheme == 'h2c' else gateway.edge}"),
                    "nghttpd": (peer, f"{prefix}://{peer.address}"),
                }
                samples: dict[str, list[float]] = {name: [] for name in sides}
                for number in range(runs + 1):
                    for name, (server, base) in sides.items():
                        before = processes.cpu_seconds(server.pid)
                        uris, body = os.path.join(folder, name), os.path.join(folder, "body")
                        h2load.run(base, uris, body, headers(), connections, streams, requests, load_core)
                        spent = processes.cpu_seconds(server.pid) - before
                        # The first run of each registers the devices and warms the caches, and does not count.
                        if number > 0:
                            samples[name].append(spent / requests * 1e6)
                medians = {name: statistics.median(values) for name, values in samples.items()}
                ratio = medians["gateway"] / medians["nghttpd"]
                rows.append(
                    {
                        "shape": f"{scheme}, {connections} connections x {streams} streams",
                        "gatewayMicroseconds": round(medians["gateway"], 3),
                        "nghttpdMicroseconds": round(medians["nghttpd"], 3),
                        "ratio": round(ratio, 3),
                        "samples": {name: [round(value, 3) for value in values] for name, values in samples.items()},
                        "target": target,
                        "passed": ratio <= target,
                    }
                )
    return rows
