"""Files that are taken away, cut or replaced under a running gateway: it notices, and says so."""

import argparse
import asyncio
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable

from clients.h2_client import Client, ConnectionLost
from shared.served_gateway import ServedGateway, StartFailed
from shared.verdicts import Verdicts
from soak import damage_scene
from soak.damage_scene import TOPIC, Scene, SceneBuilder

# The files are looked at each second; a machine that does other things, too, may take longer.
NOTICE_SECONDS = 6
JOURNAL = "journal.sqlite"


def unlink(*names: str) -> Callable[[str], None]:
    def take(state: str) -> None:
        for name in names:
            os.unlink(os.path.join(state, name))

    return take


def cut(name: str) -> Callable[[str], None]:
    return lambda state: os.truncate(os.path.join(state, name), 0)


def replace(name: str) -> Callable[[str], None]:
    """By a file with the same content."""

    def take(state: str) -> None:
        path = os.path.join(state, name)
        shutil.copyfile(path, f"{path}.copy")
        os.rename(f"{path}.copy", path)

    return take


def unlink_all(state: str) -> None:
    for name in os.listdir(state):
        if name.startswith("journal."):
            os.unlink(os.path.join(state, name))


def rename_folder(state: str) -> None:
    os.rename(state, f"{state}.elsewhere")


INDEX_CUT = "the log's index cut to nothing"
TAKEN: dict[str, Callable[[str], None]] = {
    "the journal's log deleted": unlink(f"{JOURNAL}-wal"),
    "the journal's log cut to nothing": cut(f"{JOURNAL}-wal"),
    "the journal's log replaced": replace(f"{JOURNAL}-wal"),
    INDEX_CUT: cut(f"{JOURNAL}-shm"),
    "the journal's file deleted": unlink(JOURNAL),
    "the journal's file cut to nothing": cut(JOURNAL),
    "the journal's file replaced": replace(JOURNAL),
    "all of the journal deleted": unlink_all,
    "the folder renamed": rename_folder,
}
NOTICED = "a gateway whose files were taken away refuses pushes within seconds, is not ready, and names the file"
ALIVE = "taking files away ends no gateway, but for a mapped one that is cut, with status 1 and its name"
AFTER = "the next start has every push that was answered, or is refused by name"


async def take(gateway: ServedGateway, scene: Scene, what: str, verdicts: Verdicts) -> None:
    """Takes the files away under load, waits until that is noticed, and starts on what is left."""
    gateway.start()
    addresses = gateway.addresses
    client = await Client.connect(addresses.edge, addresses.ca)
    admin = await Client.connect(addresses.admin)
    answered: list[tuple[str, str]] = []
    deadline = time.monotonic() + NOTICE_SECONDS
    is_taken, status = False, 0
    try:
        while time.monotonic() < deadline:
            if len(answered) == 5 and not is_taken:
                TAKEN[what](gateway.state)
                is_taken = True
            token, apns_id = scene.tokens[len(answered) % 7], f"{len(answered):08x}-0000-4000-8000-0000000000aa"
            head = [("apns-topic", TOPIC), ("apns-id", apns_id), ("apns-push-type", "background")]
            body = json.dumps({"aps": {"content-available": 1}, "filler": "x" * 2000}).encode()
            status = (await client.request("POST", f"/3/device/{token}", body, head)).status
            if status != 200:
                break
            answered.append((token, apns_id))
            await asyncio.sleep(0.05)
        ready = await admin.request("GET", "/readyz")
        said = ready.body.decode(errors="replace").strip()
        holds = status == 503 and ready.status == 503 and JOURNAL in said
        verdicts.check(NOTICED, holds, f"{what}: a push is answered {status}, /readyz {ready.status}: {said}")
        verdicts.check(ALIVE, gateway.process.poll() is None, f"{what}: exit status {gateway.process.poll()}")
    except (ConnectionLost, OSError) as error:
        status, said = gateway.end(9), gateway.errors()
        is_named = what == INDEX_CUT and status == 1 and f"{JOURNAL}-shm was cut" in said
        verdicts.check(ALIVE, is_named, f"{what}: {error!r}: exit status {status}: {said[-300:]}")
    await client.close()
    await admin.close()
    gateway.end(9)
    await start_again(gateway, answered, what, verdicts)


async def start_again(
    gateway: ServedGateway, answered: list[tuple[str, str]], what: str, verdicts: Verdicts
) -> None:
    if not os.path.exists(gateway.state):
        # Nobody can tell such a state from one that never was; its files are elsewhere, with everything.
        os.rename(f"{gateway.state}.elsewhere", gateway.state)
    try:
        gateway.start()
    except StartFailed as failure:
        verdicts.check(AFTER, failure.status == 1 and JOURNAL in failure.errors, f"{what}: {failure}")
        return
    admin = await Client.connect(gateway.addresses.admin)
    # The last push to each device waits there, or in flight.
    last = dict(answered)
    for token, apns_id in last.items():
        answer = await admin.request("GET", f"/v1/devices/{token}")
        pending = answer.json().get("pending") if answer.status == 200 else None
        found = pending and pending["apnsID"]
        told = f"{what}: of {len(answered)} pushes the last to {token[:8]} is {found}, not {apns_id}"
        is_said = "warning" in gateway.errors() and JOURNAL in gateway.errors()
        verdicts.check(AFTER, found == apns_id or is_said, told)
    await admin.close()
    gateway.end(9)


async def run(program: str, folder: str, verdicts: Verdicts, options: argparse.Namespace) -> None:
    builder = SceneBuilder(program, folder, options.seed)
    try:
        builder.begin()
        await builder.run(pushes=40, signal=9)
        scene = builder.keep("taken")
        for what in TAKEN:
            for path in (builder.gateway.state, f"{builder.gateway.state}.elsewhere"):
                shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(scene.state, builder.gateway.state)
            await take(builder.gateway, scene, what, verdicts)
    finally:
        builder.gateway.end(9)


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="wakegate-taken.", dir=damage_scene.memory_folder()) as folder:
        asyncio.run(run(program, folder, verdicts, options))
    return verdicts
