"""State folders with a known set of pushes, as left by ended processes, which the damage test copies and damages."""

import asyncio
import contextlib
import json
import os
import random
import shutil
import subprocess
from dataclasses import dataclass

from clients import http1
from clients.h2_client import Client, ConnectionLost
from shared.served_gateway import ServedGateway

TOPIC = "com.example.damage"
DEVICES = 60
# Time has no effect during the test: no push expires, and none may be launched again.
POLICY = {"launchInterval": 86_400, "executionWindow": 900, "dailyLaunches": 1000, "immediateRefill": 1}
RESULTS = (None, "newData", "noData", "failed")
WAITING = ("pending", "inFlight")
# The parts of an explanation that depend on time, or that the histories of pushes show better.
PASSING = ("recent", "why", "nextEligibleAt", "windowEndsAt", "lastLaunchAt", "registeredAt", "policySince")


@dataclass
class Known:
    """The complete known state: counters, devices, and the history of each push."""

    books: dict
    devices: dict[str, dict | None]
    ways: dict[str, object]


@dataclass
class Scene:
    """A state folder, and the state of a gateway that starts on it. `older` is the same folder at an earlier time."""

    name: str
    state: str
    tokens: list[str]
    apns_ids: list[str]
    older: str | None = None
    # False for a backup.
    has_history: bool = True
    known: Known | None = None


class SceneBuilder:
    """Builds scenes in `folder`; the process of each has ended."""

    def __init__(self, program: str, folder: str, seed: int):
        self.program, self.folder, self.source = program, folder, random.Random(seed)
        self.tokens = ["%064x" % self.source.getrandbits(256) for _ in range(DEVICES)]
        self.apns_ids: list[str] = []
        self.gateway = ServedGateway(program, folder, {"registration": "open", "policy": POLICY})
        self.bearer = ""

    def begin(self) -> None:
        """Creates a new state folder whose workers must authenticate."""
        shutil.rmtree(self.gateway.state, ignore_errors=True)
        os.mkdir(self.gateway.state, 0o700)
        command = [self.program, "token", "issue", "--role", "worker", "--topic", TOPIC, "--state", self.gateway.state]
        issued = subprocess.run(command, check=True, capture_output=True, text=True)
        self.bearer = issued.stdout.strip()
        self.apns_ids = []

    def keep(self, name: str, source: str | None = None, older: str | None = None) -> Scene:
        """Keeps the current state, under a name."""
        state = os.path.join(self.folder, f"scene-{name}")
        shutil.copytree(source or self.gateway.state, state, symlinks=True)
        return Scene(name, state, list(self.tokens), list(self.apns_ids), older)

    async def build(self) -> list[Scene]:
        try:
            return await self.scenes()
        finally:
            self.gateway.end(9)

    async def scenes(self) -> list[Scene]:
        """Returns the scenes: `young` is completely in its log; `grown` had checkpoints and a log that was restarted
        over an older one; `ended` was shut down; `copied` is a backup."""
        self.begin()
        await self.run(pushes=60, signal=9)
        young = self.keep("young")
        self.begin()
        await self.run(pushes=300, signal=9)
        await self.run(pushes=60, signal=9)
        old = self.keep("old")
        await self.run(pushes=60, signal=9, backup="copy")
        grown = self.keep("grown", older=old.state)
        copied = self.keep("copied", os.path.join(self.gateway.state, "backups", "copy"), old.state)
        copied.has_history = False
        await self.run(pushes=20, signal=15)
        ended = self.keep("ended", older=grown.state)
        return [young, grown, ended, copied]

    async def run(self, pushes: int, signal: int, backup: str | None = None) -> None:
        """Runs one process: some pushes, a worker that answers some of the wakes, and an end."""
        self.gateway.start()
        client, stream = [await Client.connect(self.gateway.edge, self.gateway.ca) for _ in range(2)]
        worker = asyncio.create_task(self.work(stream, client))
        for _ in range(pushes):
            await self.push(client)
        await self.quiet()
        if backup:
            admin = await Client.connect(self.gateway.admin)
            response = await admin.request("POST", "/v1/backup", json.dumps({"name": backup}).encode())
            assert response.status == 201, f"backup was answered {response.status} {response.body!r}"
            await admin.close()
        self.gateway.end(signal)
        await worker
        await client.close()
        await stream.close()

    async def push(self, client: Client) -> None:
        token, number = self.source.choice(self.tokens), len(self.apns_ids) + 1
        apns_id = f"{number:08x}-0000-4000-8000-000000000000"
        wakes, expires = self.source.random() < 0.9, self.source.random() < 0.05
        filler = "%x" % self.source.getrandbits(4 * int(2 ** self.source.uniform(5, 11.8)))
        body = json.dumps({"aps": {"content-available": 1} if wakes else {}, "filler": filler}).encode()
        head = [("apns-topic", TOPIC), ("apns-id", apns_id), ("apns-push-type", "background"), ("apns-priority", "5")]
        head += [("apns-expiration", "0")] if expires else []
        response = await client.request("POST", f"/3/device/{token}", body, head)
        assert response.status == 200, f"a push was answered {response.status} {response.body!r}"
        self.apns_ids.append(apns_id)

    async def work(self, stream: Client, client: Client) -> None:
        """Answers wakes depending on the number of the device; some never."""
        authorization = [("authorization", f"bearer {self.bearer}")]
        with contextlib.suppress(ConnectionLost):
            async for name, data in stream.events(f"/v1/topics/{TOPIC}/wakes?slots=4096&name=worker", authorization):
                assert name == "wake", f"the worker had {name}: {data}"
                result = RESULTS[self.tokens.index(data["device"]) % len(RESULTS)]
                if result:
                    body = json.dumps({"result": result}).encode()
                    await client.request("POST", f"/v1/wakes/{data['wake']}", body, authorization)

    async def quiet(self) -> None:
        """Waits until the totals are unchanged for a second, so that even data that a crash may lose is durable."""
        last, since = None, 0
        while since < 12:
            [(_, stats)] = await http1.read_all(self.gateway.admin, ["/v1/stats"])
            since = since + 1 if stats == last else 0
            last = stats
            await asyncio.sleep(0.1)


async def ask(admin: str, scene: Scene) -> Known:
    """Returns the gateway's complete knowledge of the scene's pushes."""
    paths = ["/v1/stats"] + [f"/v1/devices/{token}" for token in scene.tokens]
    paths += [f"/v1/pushes/{apns_id}" for apns_id in scene.apns_ids]
    answers = await http1.read_all(admin, paths)
    devices = answers[1 : 1 + len(scene.tokens)]
    ways = answers[1 + len(scene.tokens) :]
    stats = answers[0][1]
    return Known(
        {key: stats[key] for key in ("pushes", "wakes", "devices")},
        {token: device_of(*answer) for token, answer in zip(scene.tokens, devices, strict=True)},
        {apns_id: way_of(*answer) for apns_id, answer in zip(scene.apns_ids, ways, strict=True)},
    )


def device_of(status: int, answer: dict) -> dict | None:
    if status != 200:
        return None
    kept = {key: value for key, value in answer.items() if key not in PASSING}
    for key in WAITING:
        if kept[key]:
            kept[key] = {name: kept[key][name] for name in ("apnsID", "priority", "attempts", "coalesced")}
    return kept


def way_of(status: int, answer: dict) -> object:
    """Returns a history without its times, some of which are those of the start."""
    if status != 200:
        return None
    steps = [(step["event"], step["detail"], step["other"]) for step in answer["events"]]
    return (answer["state"], answer["into"], answer["reason"], steps)
