"""A worker for a continued task, with a bar here and at the gateway. Usage: progress.py TOPIC TASK

It uses the library in deploy/python.
"""
import asyncio, sys
from wakegate import Task, Worker

STEPS = 50
if len(sys.argv) != 3:
    sys.exit(__doc__)
worker = Worker(topic=sys.argv[1])


def show(title: str, done: int) -> None:
    bar = "█" * (done * 30 // STEPS)
    print(f"\r{title} {bar:·<30} {done}/{STEPS}", end="" if sys.stdout.isatty() else "\n", flush=True)


@worker.continued(sys.argv[2])
async def export(task: Task) -> None:
    """The purpose of this worker: resumes from the progress of an earlier launch, and is cancelled at its deadline."""
    first = task.resumed_from.completed if task.resumed_from else 0
    try:
        for done in range(first + 1, STEPS + 1):
            await asyncio.sleep(0.1)  # The work of one step.
            show(task.progress.title or task.identifier, done)
            # The library reports four times a second. Progress restarts the task's time.
            task.progress.update(completed=done, total=STEPS, subtitle=f"step {done}")
    except asyncio.CancelledError:
        print(f"\n{task.identifier} is cancelled", file=sys.stderr)
        raise


worker.run()
