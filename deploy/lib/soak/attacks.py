"""Attacks on a running gateway: the attacker is disconnected, a healthy client is served, and no resources remain in
use.

As a program it runs one attack in the short form of the tests and checks no times.
"""

import argparse
import asyncio
import concurrent.futures
import multiprocessing
import os
import statistics
import tempfile
import time

from clients.h2_client import Client, ConnectionLost
from shared import processes, trial
from shared.processes import Gateway
from shared.verdicts import Verdicts
from soak import offences
from soak.offences import Attack, Target

GROWTH_BYTES_MAX = 64 * 1024 * 1024
ANSWER_SECONDS_MAX = 0.1
DESCRIPTORS_SECONDS = 30
# The pause between two pushes of the healthy client. The short pause is for runs that check its times. In the tests, a
# client that never pauses would take the core from the gateways of other tests.
REST_SECONDS_TIMED = 0.002
REST_SECONDS = 0.05
# The number of connections that may be closing while they are counted.
DESCRIPTORS_SLACK = 8
SCALE = 4
# The handshakes of attackers with more work take a while on a busy machine.
SECONDS = {"requestSeconds": 2, "responseSeconds": 2, "writeStallSeconds": 2, "handshakeSeconds": 5}
SETTINGS = ["store=memory", *(f"limits.{name}={seconds}" for name, seconds in SECONDS.items())]
PAYLOAD = b'{"aps":{"content-available":1}}'
FIELDS = [("apns-topic", "com.example.healthy"), ("apns-push-type", "background"), ("apns-priority", "5")]


def offend(name: str, target: Target) -> list[str]:
    attack = next(attack for attack in offences.ATTACKS if attack.name == name)
    return list(attack.run(target))


class Healthy:
    """A provider that pushes repeatedly on one connection."""

    def __init__(self, client: Client):
        self.client = client
        self.seconds: list[float] = []
        self.refused: list[str] = []
        self.count = 0

    async def push(self) -> None:
        self.count += 1
        started = time.monotonic()
        try:
            path = f"/3/device/{self.count % 1000:064x}"
            response = await self.client.request("POST", path, PAYLOAD, FIELDS)
            if response.status != 200:
                self.refused.append(f"{response.status} {response.body.decode()}")
        except ConnectionLost:
            self.refused.append("the connection was lost")
        self.seconds.append(time.monotonic() - started)


async def attack_once(
    attack: Attack, gateway: Gateway, ca: str | None, scale: int, verdicts: Verdicts, is_timed: bool
) -> None:
    address = gateway.edge if ca else gateway.plain
    host, port = address.rsplit(":", 1)
    target = Target((host, int(port)), ca, scale)
    label = f"{attack.name} over {'TLS' if ca else 'h2c'}"
    rest = REST_SECONDS_TIMED if is_timed else REST_SECONDS
    healthy = Healthy(await Client.connect(address, ca))
    # The attacker has its own process. Otherwise, the healthy client would wait for the attacker's Python code.
    offender = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    try:
        for _ in range(50):
            await healthy.push()
        healthy.seconds.clear()
        offences.forget_peak(gateway.pid)
        resident, descriptors = offences.peak_bytes(gateway.pid), processes.descriptors(gateway.pid)
        offence = asyncio.get_running_loop().run_in_executor(offender, offend, attack.name, target)
        while not offence.done():
            await healthy.push()
            await asyncio.sleep(rest)
        outcomes = await offence
        await healthy.push()
        wrong = sorted({outcome for outcome in outcomes if outcome not in attack.expected})
        cut_off = f"{label}: every offender is cut off"
        verdicts.check(cut_off, bool(outcomes) and not wrong, f"{len(outcomes)} outcomes, wrong are {wrong}")
        counts = ", ".join(f"{outcomes.count(each)} x {each}" for each in sorted(set(outcomes)))
        verdicts.note(cut_off, counts)
        name = f"{label}: a healthy client is answered"
        verdicts.check(name, bool(healthy.seconds) and not healthy.refused, f"{healthy.refused[:3]}")
        p99 = statistics.quantiles(healthy.seconds, n=100)[98] if len(healthy.seconds) > 1 else healthy.seconds[0]
        figures = f"{len(healthy.seconds)} pushes, p99 {p99 * 1000:.1f} ms, slowest {max(healthy.seconds) * 1000:.1f} ms"
        verdicts.note(name, figures)
        if is_timed:
            name = f"{label}: within {ANSWER_SECONDS_MAX * 1000:.0f} ms"
            verdicts.check(name, p99 <= ANSWER_SECONDS_MAX, figures)
        name = f"{label}: memory grows by less than 64 MiB"
        growth = offences.peak_bytes(gateway.pid) - resident
        verdicts.check(name, growth < GROWTH_BYTES_MAX, f"it grew by {growth:,} bytes")
        verdicts.note(name, f"{growth / 1024 / 1024:.1f} MiB")
        deadline = time.monotonic() + DESCRIPTORS_SECONDS
        while processes.descriptors(gateway.pid) > descriptors + DESCRIPTORS_SLACK and time.monotonic() < deadline:
            await healthy.push()
            await asyncio.sleep(rest)
        left = processes.descriptors(gateway.pid) - descriptors
        verdicts.check(f"{label}: descriptors return", left <= DESCRIPTORS_SLACK, f"{left} are left")
    finally:
        offender.shutdown()
        await healthy.client.close()


def run(program: str, chosen: list[Attack], transports: list[str], scale: int, is_timed: bool) -> Verdicts:
    """Runs each attack on a separate gateway in the tests, and all on one gateway in the long run."""
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="wakegate-attacks.") as folder:
        with Gateway(os.path.dirname(program), folder, [], SETTINGS) as gateway:
            for attack in chosen:
                for transport in (each for each in transports if each in attack.transports):
                    ca = gateway.ca if transport == "tls" else None
                    asyncio.run(attack_once(attack, gateway, ca, scale, verdicts, is_timed))
            verdicts.check("the gateway still runs", gateway.process.poll() is None, "it has ended")
    return verdicts


def soak(program: str, _: argparse.Namespace) -> Verdicts:
    return run(program, offences.ATTACKS, ["tls", "h2c"], SCALE, is_timed=True)


def short(program: str, options: argparse.Namespace) -> Verdicts:
    chosen = [attack for attack in offences.ATTACKS if attack.name == options.attack]
    return run(program, chosen, [options.transport], 1, is_timed=False)


if __name__ == "__main__":
    trial.run("attacks", short, attack=[attack.name for attack in offences.ATTACKS], transport=["tls", "h2c"])
