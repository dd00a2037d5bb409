"""Minutes of mixed load on one gateway: memory, descriptors and files stay constant after the warm-up."""

import argparse
import asyncio
import os
import tempfile

from bench import push_load
from crash import driver
from shared import processes
from shared.served_gateway import ServedGateway
from shared.verdicts import Verdicts

DEVICES = 400
CONNECTIONS = 10
SAMPLE_SECONDS = 0.5
GROWTH_MAX = 1.15
MEGABYTE = 1_000_000


def sample(gateway: ServedGateway) -> dict[str, int]:
    journal = sum(entry.stat().st_size for entry in os.scandir(gateway.state) if entry.name.startswith("journal"))
    resident, descriptors = processes.resident_bytes(gateway.pid), processes.descriptors(gateway.pid)
    return {"resident": resident, "descriptors": descriptors, "journal": journal}


async def work(run: driver.Crashes, seconds: float, rate: int, folder: str) -> list[dict[str, int]]:
    """Runs the providers, workers and operators of the crash tests, and h2load, for some time."""
    load = run.load()
    everybody = asyncio.create_task(load.run())
    pushes = int(seconds * rate) // CONNECTIONS * CONNECTIONS
    samples = []
    pushing = asyncio.create_task(
        asyncio.to_thread(
            push_load.run, f"https://{run.gateway.edge}", folder, "gateway", CONNECTIONS, push_load.STREAMS,
            pushes, rate=rate // CONNECTIONS,
        )
    )  # fmt: skip
    while not pushing.done():
        samples.append(sample(run.gateway))
        await asyncio.sleep(SAMPLE_SECONDS)
    name = "every push of h2load is answered 200"
    try:
        await pushing
        run.verdicts.check(name, True, "")
    except SystemExit as failure:
        run.verdicts.check(name, False, str(failure)[-600:])
    run.verdicts.note(name, f"{pushes:,} pushes, {rate:,} a second")
    await load.stop()
    await everybody
    return samples


def compare(samples: list[dict[str, int]], verdicts: Verdicts) -> None:
    third = len(samples) // 3
    for what, slack in (("resident", 8 * MEGABYTE), ("descriptors", 8), ("journal", 8 * MEGABYTE)):
        before = max(each[what] for each in samples[third : 2 * third])
        after = max(each[what] for each in samples[2 * third :])
        name = f"{what} of the last third is at most that of the second"
        verdicts.check(name, after <= before * GROWTH_MAX + slack, f"{after:,} after {before:,}")
        start = samples[0][what]
        verdicts.note(name, f"at the start {start:,}, highest of the second third {before:,}, of the last {after:,}")


async def run(program: str, folder: str, verdicts: Verdicts, options: argparse.Namespace) -> None:
    push_load.write_inputs(folder, CONNECTIONS)
    gateway = ServedGateway(program, folder, {**driver.SETTINGS, "registration": "open"})
    crashes = driver.Crashes(gateway, DEVICES, verdicts, options.seed)
    try:
        await crashes.begin()
        compare(await work(crashes, options.minutes * 60, options.rate, folder), verdicts)
        await crashes.audit(is_restart=False)
        gateway.end(9)
        if crashes.start():
            await crashes.audit()
            await crashes.settle()
        print(f"      {crashes.summary()}")
    finally:
        gateway.end(9)


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    with tempfile.TemporaryDirectory(prefix="wakegate-load.") as folder:
        asyncio.run(run(program, folder, verdicts, options))
    return verdicts
