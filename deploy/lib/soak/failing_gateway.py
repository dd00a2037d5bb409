"""What a gateway must answer once its disk has failed, and what it must leave alone."""

import asyncio
import glob
import json
import os
import time

from crash.load import Load
from shared.verdicts import Verdicts

WAIT_SECONDS = 20


def journal_files(state: str) -> list[str]:
    """The journal and its log. The index of the log is rebuilt at every start, and no part of what is kept."""
    return [path for path in sorted(glob.glob(os.path.join(state, "journal*"))) if not path.endswith("-shm")]


def sizes_and_times(state: str) -> dict[str, tuple[int, int]]:
    return {path: (os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in journal_files(state)}


async def look(load: Load, state: str, others: tuple[int, int] = (0, 0)) -> str:
    """Compares the answers of a gateway that failed with the rules; the cause that /readyz gives.

    `others` are pushes that somebody else was answered 200, and sent at most.
    """
    verdicts: Verdicts = load.verdicts
    admin = await load.connect(load.addresses.admin, None)
    edge = await load.edge()
    name = "a gateway whose disk failed is alive, not ready, and says why"
    verdicts.equal(name, "/healthz", (await admin.request("GET", "/healthz")).status, 200)
    ready = await admin.request("GET", "/readyz")
    verdicts.equal(name, "/readyz", ready.status, 503)
    cause = ready.body.decode(errors="replace")
    verdicts.check(name, "journal" in cause, f"/readyz says {cause!r}, which names no file")

    before = sizes_and_times(state)
    device = next(device for device in load.ledger.devices if device.registered == [True])
    name = "once the disk has failed pushes and results are answered 503 ServiceUnavailable"
    for _ in range(20):
        push = load.begin_push(device)
        body = json.dumps(device.payload(push.sequence)).encode()
        headers = load.headers(device, push.sequence)
        answer = await edge.request("POST", f"/3/device/{device.token}", body, headers)
        load.leave_open(push)
        found = (answer.status, json.loads(answer.body or b"{}").get("reason"))
        verdicts.equal(name, "push", found, (503, "ServiceUnavailable"))
    open_wakes = [wake for wake in load.ledger.wakes.values() if wake.outcome is None]
    for wake in open_wakes[:3]:
        answer = await edge.request("POST", f"/v1/wakes/{wake.id}", b'{"result":"newData"}')
        wake.posted = wake.posted or "newData"
        found = (answer.status, json.loads(answer.body or b"{}").get("reason"))
        verdicts.equal(name, "result", found, (503, "ServiceUnavailable"))

    name = "statistics and explain answer from the last durable state"
    first = (await admin.request("GET", "/v1/stats")).json()
    load.take_statistics(first)
    known, perhaps = sum(load.ledger.accepted.values()), sum(load.ledger.perhaps.values())
    least, most = known + others[0], known + perhaps + others[1]
    verdicts.within(name, "accepted", first["pushes"]["accepted"], least, most)
    explained = await admin.request("GET", f"/v1/devices/{device.token}")
    verdicts.equal(name, "explain", (explained.status, explained.json()["token"]), (200, device.token))
    name = "once the disk has failed the journal's files stay as they are"
    verdicts.equal(name, "sizes and times of change", sizes_and_times(state), before)
    await edge.close()
    await admin.close()
    return cause


async def until_failed(load: Load) -> bool:
    """Waits, while everybody works, until a request is refused; false when none is in time."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not load.refusals and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    return load.refusals > 0
