"""A WakeGate worker: handles the wakes of a topic, several at once. Usage: worker.py TOPIC (needs httpx[http2])"""
import asyncio, contextlib, json, os, random, signal, ssl, sys
import httpx

running, stopping = {}, asyncio.Event()  # The running wakes: for each id, its task.


async def handle(wake: dict) -> str:
    """The worker's own task. Returns "newData", "noData" or "failed". It is cancelled when its time is over."""
    print(wake["device"], json.dumps(wake["payload"]), flush=True)
    return "newData"


async def answer(client: httpx.AsyncClient, wake: dict) -> None:
    try:
        result = await handle(wake)
    except Exception as error:
        print(f"wake {wake['wake']}: {error!r}", file=sys.stderr)
        result = "failed"
    for attempt in range(8):  # Reporting the result twice is harmless.
        with contextlib.suppress(httpx.TransportError):
            if (await client.post(f"/v1/wakes/{wake['wake']}", json={"result": result})).status_code < 429:
                return  # 204, or 404 and 409 if it was too late. 429 and 5xx are temporary.
        await asyncio.sleep(random.uniform(0.1, 0.2) * 2**attempt)


async def listen(client: httpx.AsyncClient, topic: str) -> None:
    timeout = httpx.Timeout(10, read=45)  # A comment arrives every 15 s: silence means a broken stream.
    async with client.stream("GET", f"/v1/topics/{topic}/wakes?slots=4&name=python", timeout=timeout) as response:
        rest = ""
        await asyncio.sleep(float(response.headers.get("retry-after", 0)))  # A busy gateway asks for a wait.
        async for text in response.raise_for_status().aiter_text():  # aiter_lines would split at U+2028, too.
            *events, rest = (rest + text).split("\n\n")
            for lines in (event.split("\n") for event in events):  # A comment has no data; it keeps the stream alive.
                wake = json.loads("".join(line[6:] for line in lines if line.startswith("data: ")) or "{}")
                if "event: expired" in lines and wake["wake"] in running:
                    running[wake["wake"]].cancel()
                elif "event: wake" in lines and not stopping.is_set():  # Otherwise, it is launched elsewhere.
                    running[wake["wake"]] = task = asyncio.create_task(answer(client, wake))
                    task.add_done_callback(lambda _, wake=wake: running.pop(wake["wake"]))


async def main(topic: str, url: str, ca: str, token: str | None) -> None:
    trust, proof = ssl.create_default_context(cafile=ca), {"authorization": f"bearer {token}"} if token else {}
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    while True:
        async with httpx.AsyncClient(base_url=url, http2=True, verify=trust, headers=proof) as client:
            stream, stop = asyncio.create_task(listen(client, topic)), asyncio.create_task(stopping.wait())
            await asyncio.wait({stream, stop}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.is_set():  # The stream stays open until every answer has arrived.
                return await asyncio.gather(*running.values(), return_exceptions=True)
            print(f"the stream ended: {stream.exception()!r}", file=sys.stderr)
            for task in running.values():
                task.cancel()  # A wake is lost with its stream, and is launched elsewhere.
        await asyncio.sleep(random.uniform(0.5, 5))

settings = {"WAKEGATE_URL": "https://127.0.0.1:2197", "WAKEGATE_CA": ".wakegate/ca.pem", "WAKEGATE_TOKEN": None}
topic = sys.argv[1] if len(sys.argv) == 2 else sys.exit(__doc__)
asyncio.run(main(topic, *(os.environ.get(name, default) for name, default in settings.items())))
