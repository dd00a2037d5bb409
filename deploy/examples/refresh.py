"""A worker for a refresh task, which submits its next launch itself. Usage: refresh.py TOPIC TASK DEVICE [SECONDS]

It uses the library in deploy/python.
"""
import asyncio, sys
from wakegate import Task, Worker

if len(sys.argv) not in (4, 5):
    sys.exit(__doc__)
topic, identifier, device = sys.argv[1:4]
every = float(sys.argv[4]) if len(sys.argv) == 5 else 15 * 60  # The next launch is never sooner, and often later.
worker = Worker(topic=topic, devices=[device])


@worker.app_refresh(identifier)  # Registered before the worker runs; the topic's configuration permits the identifier.
async def refresh(task: Task) -> None:
    """The work: it has 30 seconds, and is cancelled 5 seconds before they are over. An exception is a failure."""
    await task.scheduler.submit(identifier, earliest_begin=every)  # First, so that a failure below does not end it all.
    print(f"{identifier} launched, attempt {task.attempt}", flush=True)
    try:
        await asyncio.sleep(0.1)  # Fetch what is new here, in small steps.
    except asyncio.CancelledError:
        print(f"{identifier} stops: {task.expiration_reason}", file=sys.stderr)
        raise


async def begin() -> None:
    """Submits the first request. A pending request keeps its time, because another submission would replace it."""
    if all(request["identifier"] != identifier for request in await worker.scheduler.pending()):
        await worker.scheduler.submit(identifier)


asyncio.run(begin())
worker.run()
