"""The growth of a push's cost with loops, devices and connections, with the store in memory and over TLS."""

import argparse
import os
import random
from contextlib import ExitStack
from functools import partial

from bench import http2_load, push_load
from bench.tables import Table, microseconds
from clients import steady_load
from shared import interleaved, processes

LOOPS = (1, 2)
DEVICES = (10_000, 1_000_000)
CONNECTIONS = (10, 100, 1000, 10_000)
# The number of devices that receive pushes during the measurement, chosen randomly from all devices.
ASKED = 200_000
# The number of concurrent pushes, for any number of connections.
IN_FLIGHT = 10_000
PROCESSES_MAX = 100
STREAMS_MAX = 1000
RUNS_MAX = 3
# A handshake takes about a millisecond of CPU time on both sides together.
HANDSHAKE_SECONDS = 0.0015


def gateway_of(stack: ExitStack, products: str, folder: str, name: str, cores: int = 1) -> processes.Gateway:
    place = os.path.join(folder, name)
    os.mkdir(place)
    prefix = ["taskset", "-c", f"0-{cores - 1}"]
    # The load opens all connections at once. Without this setting, the gateway would treat this as an attack.
    settings = ["store=memory", f"limits.handshakesMax={2 * max(CONNECTIONS)}"]
    return stack.enter_context(processes.Gateway(products, place, prefix, settings))


def load(gateway: processes.Gateway, folder: str, name: str, **shape: object) -> steady_load.Load:
    return push_load.steady(f"https://{gateway.edge}", folder, name, **shape)


def cost(figures: interleaved.Sample, times: interleaved.Sample) -> list[str]:
    """Returns the cells for the cost and the latency of a push."""
    return [
        f"{figures['cpuMicroseconds']:.2f}", f"{figures['perSecond']:,.0f}", microseconds(times["p50"]),
        microseconds(times["p99"]),
    ]  # fmt: skip


def cost_columns(of_times: str) -> list[str]:
    return ["CPU us a push", "a second", f"p50{of_times}", f"p99{of_times}"]


def loops(options: argparse.Namespace, folder: str) -> list[Table]:
    """Measures one loop and two loops, on all cores, which the load shares."""
    push_load.write_inputs(folder)
    with ExitStack() as stack:
        counts = [count for count in LOOPS if count <= len(steady_load.ALL_CORES)]
        gateways = {count: gateway_of(stack, options.products, folder, f"loops{count}", count) for count in counts}
        # Each gateway keeps as many loops as it had cores at its start.
        for gateway in gateways.values():
            processes.move(gateway.pid, steady_load.ALL_CORES)

        def sample(gateway: processes.Gateway, **settings: object) -> interleaved.Sample:
            asked = load(gateway, folder, "gateway", cores=steady_load.ALL_CORES, **settings)
            return steady_load.observe(asked, gateway.pid)

        paced = {
            "rate": http2_load.RATE // push_load.CONNECTIONS, "together": http2_load.RATE_TOGETHER,
            "seconds": http2_load.RATE_SECONDS,
        }  # fmt: skip
        full, calm = (
            interleaved.run(
                min(options.runs, RUNS_MAX), {count: partial(sample, each, **pace) for count, each in gateways.items()}
            )
            for pace in ({}, paced)
        )
    rows = [
        [str(count), *cost(interleaved.medians(full[count]), interleaved.medians(calm[count]))] for count in counts
    ]
    title = f"Loops: all on {len(steady_load.ALL_CORES)} cores, with the load generator"
    return [Table(title, ["loops", *cost_columns(f" at {http2_load.RATE:,}/s")], rows)]


def devices(options: argparse.Namespace, folder: str) -> list[Table]:
    """Measures pushes to devices that are drawn from all devices, each of which has a waiting push."""
    push_load.write_inputs(folder)
    with ExitStack() as stack:
        gateways, before, resident = {}, {}, {}
        for count in DEVICES:
            gateway = gateways[count] = gateway_of(stack, options.products, folder, f"devices{count}")
            before[count] = processes.resident_bytes(gateway.pid)
            register(gateway, folder, count)
            resident[count] = processes.resident_bytes(gateway.pid)
        sides = {
            count: partial(steady_load.observe, load(gateway, folder, f"asked{count}"), gateway.pid)
            for count, gateway in gateways.items()
        }
        samples = interleaved.run(min(options.runs, RUNS_MAX), sides)
    rows = []
    for count in DEVICES:
        figures, each = interleaved.medians(samples[count]), (resident[count] - before[count]) / count
        rows.append([f"{count:,}", *cost(figures, figures), f"{resident[count] / 1e6:,.0f} MB", f"{each:,.0f}"])
    columns = ["devices", *cost_columns(", saturated"), "memory", "bytes a device"]
    return [Table("Devices: each has a pending push of 228 bytes, one core, TLS", columns, rows)]


def register(gateway: processes.Gateway, folder: str, count: int) -> None:
    """Pushes once to each device, and writes the paths of the measured devices in another order."""
    paths = push_load.paths(count, seed=count)
    asked = random.Random(count).sample(paths, min(count, ASKED))
    push_load.write(folder, "registered", paths, push_load.CONNECTIONS)
    push_load.write(folder, f"asked{count}", asked, push_load.CONNECTIONS)
    del paths
    shape = (push_load.CONNECTIONS, push_load.STREAMS, count)
    push_load.run(f"https://{gateway.edge}", folder, "registered", *shape, prefix=steady_load.LOAD_CORES)


def connections(options: argparse.Namespace, folder: str) -> list[Table]:
    """Measures the same number of concurrent pushes, spread over more and more connections."""
    rows = []
    for count in CONNECTIONS:
        push_load.write_inputs(folder, min(count, PROCESSES_MAX))
        with ExitStack() as stack:
            gateway = gateway_of(stack, options.products, folder, f"connections{count}")
            before = processes.resident_bytes(gateway.pid)
            shape = load(
                gateway, folder, "gateway", connections=count, streams=min(STREAMS_MAX, IN_FLIGHT // count),
                together=max(1, count // PROCESSES_MAX), warm_up_seconds=0.3 + count * HANDSHAKE_SECONDS,
            )  # fmt: skip
            # All connections are opened during the warm-up. At its end, devices are registered and caches are warm.
            samples = [steady_load.observe(shape, gateway.pid) for _ in range(min(options.runs, RUNS_MAX))]
        peak = max(sample["residentMegabytes"] for sample in samples) * 1e6
        figures, each = interleaved.medians(samples), (peak - before) / count
        name = f"{count:,} x {shape.streams}"
        rows.append([name, *cost(figures, figures), f"{peak / 1e6:,.0f} MB", f"{each:,.0f}"])
    columns = ["connections", *cost_columns(", saturated"), "memory", "bytes a connection"]
    return [Table(f"Connections: {IN_FLIGHT:,} pushes in flight, one core, TLS", columns, rows)]
