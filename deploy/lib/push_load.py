"""CPU microseconds a push: the gateway and nghttpd under the same load, interleaved."""

import os
import random
import re
import statistics
import subprocess

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


def write_inputs(folder: str) -> None:
    source = random.Random(1)
    tokens = ["%064x" % source.getrandbits(256) for _ in range(DEVICES)]
    for name, separator in (("gateway", "/"), ("nghttpd", "?")):
        with open(os.path.join(folder, f"{name}.uris"), "w", encoding="ascii") as file:
            file.writelines(f"https://127.0.0.1/3/device{separator}{token}\n" for token in tokens)
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


def run(folder: str, uris: str, base: str, connections: int, streams: int, requests: int, prefix: list[str]) -> None:
    """One run of h2load; anything but a 2xx to every request ends the measurement."""
    command = [
        *prefix, "h2load", "-t", "1", "-c", str(connections), "-m", str(streams), "-n", str(requests),
        "-d", os.path.join(folder, "body"), "-i", os.path.join(folder, uris), "-B", base, *headers(),
    ]  # fmt: skip
    output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout
    codes = re.search(r"status codes: (\d+) 2xx", output)
    if not codes or int(codes.group(1)) != requests:
        raise SystemExit(f"not every reply was 2xx; the run does not count:\n{output}")


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
                        run(folder, f"{name}.uris", base, connections, streams, requests, load_core)
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
