"""A worker for a processing task: compresses the *.log files of a folder while the device charges and is not in use.

Usage: processing.py TOPIC TASK DEVICE FOLDER. It uses the library in deploy/python.
"""
import asyncio, gzip, os, shutil, sys
from pathlib import Path
from wakegate import Task, Worker

if len(sys.argv) != 5:
    sys.exit(__doc__)
topic, identifier, device, folder = sys.argv[1:]
worker = Worker(topic=topic, devices=[device])


@worker.processing(identifier)
def compress(task: Task) -> bool:
    """The work: it has 10 minutes, and less when a person uses the device or unplugs it. Each file is a step.

    A handler that is not async runs in a thread, and checks `expiring` after each step.
    """
    task.call(task.scheduler.submit(identifier, "processing", requires_power=True))  # The next launch continues.
    for file in sorted(Path(folder).glob("*.log")):
        if task.expiring.is_set():
            print(f"{identifier} stops before {file.name}: {task.expiration_reason}", flush=True)
            return False
        part = Path(f"{file}.part")  # An interrupted step leaves no partial result.
        with open(file, "rb") as source, gzip.open(part, "wb") as target:
            shutil.copyfileobj(source, target)
        os.replace(part, f"{file}.gz")
        file.unlink()
        print(f"{identifier} compressed {file.name}", flush=True)
    return True


async def begin() -> None:
    """Submits the first request. A pending request keeps its place, because another submission would replace it."""
    if all(request["identifier"] != identifier for request in await worker.scheduler.pending()):
        await worker.scheduler.submit(identifier, "processing", requires_power=True)


asyncio.run(begin())
worker.run()
