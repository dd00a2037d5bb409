"""A worker for a continued task, with a bar here and at the gateway. Usage: progress.py TOPIC TASK (httpx[http2])"""
import asyncio, contextlib, json, os, ssl, sys, time
import httpx

STEPS, running = 50, {}  # What is being done: the wake's id and its task.


def show(title: str, done: int) -> None:
    bar = "█" * (done * 30 // STEPS)
    print(f"\r{title} {bar:·<30} {done}/{STEPS}", end="" if sys.stdout.isatty() else "\n", flush=True)


async def export(client: httpx.AsyncClient, wake: dict) -> None:
    """What this worker is for: goes on from where an earlier launch was, and is cancelled when its time is over."""
    told, first = 0.0, (wake.get("resumedFrom") or {"completed": 0})["completed"]
    for done in range(first + 1, STEPS + 1):
        await asyncio.sleep(0.1)  # The work of one step.
        show(wake.get("title", wake["task"]), done)
        if time.monotonic() - told >= 0.25 or done == STEPS:  # Four reports a second are enough; the last one counts.
            told = time.monotonic()
            report = {"completed": done, "total": STEPS, "subtitle": f"step {done}"}
            await client.post(f"/v1/wakes/{wake['wake']}/progress", json=report)  # An advance gives it its time anew.


async def handle(client: httpx.AsyncClient, wake: dict) -> None:
    try:
        await export(client, wake)
        success = True
    except Exception as error:
        print(f"\n{wake['task']}: {error!r}", file=sys.stderr)
        success = False
    for attempt in range(8):  # To tell it twice does no harm.
        with contextlib.suppress(httpx.TransportError):
            if (await client.post(f"/v1/wakes/{wake['wake']}", json={"success": success})).status_code < 500:
                return  # 204, or 404 and 409 when it came too late.
        await asyncio.sleep(0.1 * 2**attempt)


async def listen(client: httpx.AsyncClient, topic: str, task: str) -> None:
    timeout, rest = httpx.Timeout(10, read=45), ""  # A comment comes every 15 s: silence means that it is broken.
    path = f"/v1/topics/{topic}/wakes?slots=4&push=0&task={task}"
    async with client.stream("GET", path, timeout=timeout) as response:
        async for text in response.raise_for_status().aiter_text():
            *events, rest = (rest + text).split("\n\n")
            for lines in (event.split("\n") for event in events):
                wake = json.loads("".join(line[6:] for line in lines if line.startswith("data: ")) or "{}")
                if "event: wake" in lines:
                    running[wake["wake"]] = asyncio.create_task(handle(client, wake))
                elif "event: expired" in lines and wake["wake"] in running:
                    print(f"\n{wake['wake']} is over: {wake['reason']}", file=sys.stderr)  # Such as "cancelled".
                    running.pop(wake["wake"]).cancel()

async def main(topic: str, task: str, url: str, ca: str, token: str | None) -> None:
    trust, proof = ssl.create_default_context(cafile=ca), {"authorization": f"bearer {token}"} if token else {}
    async with httpx.AsyncClient(base_url=url, http2=True, verify=trust, headers=proof) as client:
        await listen(client, topic, task)  # What runs when the stream ends launches again, and goes on.

settings = {"WAKEGATE_URL": "https://127.0.0.1:2197", "WAKEGATE_CA": ".wakegate/ca.pem", "WAKEGATE_TOKEN": None}
asyncio.run(main(*sys.argv[1:3], *(os.environ.get(name, default) for name, default in settings.items())))
