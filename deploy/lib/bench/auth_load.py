"""What asking providers for tokens costs a push: two gateways under the same load, of which one asks."""

import base64
import json
import os
import statistics
import subprocess
import time

from bench import instructions, push_load
from shared import processes

RATIO_TARGET = 1.03
STREAMS = 32
TEAM, KEY_ID = "DEF123GHIJ", "ABC123DEFG"
# The handshakes of a run are of no concern here, so a run is long beside them.
REQUESTS_FACTOR = 2


def authorization(key_file: str) -> str:
    """A provider token made now, as a backend that signs with OpenSSL sends it."""
    parts = [{"alg": "ES256", "kid": KEY_ID}, {"iss": TEAM, "iat": int(time.time())}]
    signed = b".".join(encoded(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
    command = ["openssl", "dgst", "-sha256", "-sign", key_file]
    signature = subprocess.run(command, input=signed, capture_output=True, check=True).stdout
    return f"bearer {signed.decode()}.{encoded(signature).decode()}"


def encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def make_key(products: str, folder: str) -> tuple[str, str]:
    """A provider's key, and the folder that a gateway knows it by."""
    key, keys = os.path.join(folder, "provider.pem"), os.path.join(folder, "keys")
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], check=True)
    command = ["key", "add", key, "--team", TEAM, "--key-id", KEY_ID, "--keys", keys]
    subprocess.run([os.path.join(products, "wakegate"), *command], check=True)
    return key, keys


def gateway_of(products: str, folder: str, name: str, settings: list[str]) -> processes.Gateway:
    place = os.path.join(folder, name)
    os.mkdir(place)
    return processes.Gateway(products, place, ["taskset", "-c", "0"], ["store=memory", *settings])


def counted(products: str, folder: str, inputs: str, headers: list[str], settings: list[str]) -> float:
    """Instructions of a push over h2c to a gateway with these settings, without the history's, which no token costs."""
    count, gateway = instructions.counted(products, folder, "memory", settings, instructions.HISTORY)
    with gateway:
        uris, body = os.path.join(inputs, "gateway"), os.path.join(inputs, "body")
        each = instructions.each(count, gateway, f"http://{gateway.plain}", uris, body, headers=headers)
    if len(count.left_out) != 1:
        raise SystemExit(f"{len(count.left_out)} threads call {instructions.HISTORY}, and not the history's alone")
    return each


def measure(products: str, folder: str, runs: int, requests: int) -> dict:
    """CPU a push with and without provider tokens, over TLS; both sides get the same bytes."""
    push_load.write_inputs(folder)
    key, keys = make_key(products, folder)
    headers = push_load.headers(authorization(key))
    with gateway_of(products, folder, "without", []) as without, \
            gateway_of(products, folder, "with", [f"providerKeys={keys}"]) as asking:  # fmt: skip
        gateways = {"without": without, "with": asking}
        samples: dict[str, list[float]] = {name: [] for name in gateways}
        for number in range(runs + 1):
            # Each goes first as often as the other.
            for name in sorted(gateways, reverse=number % 2 == 0):
                gateway = gateways[name]
                spent = push_load.microseconds(
                    gateway, f"https://{gateway.edge}", os.path.join(folder, "gateway"), folder, headers, STREAMS,
                    requests * REQUESTS_FACTOR,
                )  # fmt: skip
                # The first run of each registers the devices and warms the caches, and does not count.
                if number > 0:
                    samples[name].append(spent)
        status = push_load.status_without_token(asking)
    if status != 403:
        raise SystemExit(f"a push without a token was answered {status} and not 403; nothing was measured")
    medians = {name: statistics.median(values) for name, values in samples.items()}
    counts = {
        name: counted(products, os.path.join(folder, name), folder, headers, settings)
        for name, settings in (("without", []), ("with", [f"providerKeys={keys}"]))
    }
    # CPU time differs by more than what is asked for: what counts is counted.
    ratio = counts["with"] / counts["without"]
    return {
        "instructions": {name: round(count) for name, count in counts.items()},
        "shape": f"TLS, {push_load.CONNECTIONS} connections x {STREAMS} streams",
        "microseconds": {name: round(value, 3) for name, value in medians.items()},
        "ratio": round(ratio, 3),
        "samples": {name: [round(value, 3) for value in values] for name, values in samples.items()},
        "target": RATIO_TARGET,
        "passed": ratio <= RATIO_TARGET,
    }
