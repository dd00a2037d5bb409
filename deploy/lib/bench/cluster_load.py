"""Several gateways on one PostgreSQL: durable pushes a second, wakes from one gateway to workers of another, claims,
and the database's cost of many devices."""

import argparse
import glob
import math
import os
import random
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from bench import durable_load, push_load, wake_latency, wakes
from bench.tables import Table, microseconds
from clients import fleet_process, steady_load
from clients.fleet_process import FleetProcess
from cluster import postgres
from cluster.gateways import Gateways
from shared import interleaved, processes, waiting

GATEWAYS = (1, 2, 3)
# Divisible by each number of gateways, so that all have equal shares.
CONNECTIONS, STREAMS = 12, 256
WAKE_MILLISECONDS_AIM = 20
WARM_UP = 20
CLAIMS = 20_000
# The maximum time in which waiting wakes must be claimed. After it, the run is given up.
CLAIM_SECONDS = 120
# The number of claims of a worker that takes one wake after another.
CLAIMS_ONE_BY_ONE = 2000
# The pushes per second while the database contains all devices, in periods of minutes whose p99 are compared.
STEADY_RATE, PERIOD, P99_RATIO_AIM = 2000, 5, 1.5
SETTINGS = {
    "shared_buffers": "'1GB'", "max_wal_size": "'8GB'", "checkpoint_timeout": "'30min'", "wal_log_hints": "off",
    "wal_keep_size": 0,
}  # fmt: skip
TABLES = ("device", "due", "ready", "wake", "push", "event", "bundle")


class Bench:
    """A server, a database for each kind of run, and folders for gateways."""

    def __init__(self, products: str, folder: str, server: postgres.Database, devices: int):
        self.program = os.path.join(products, "wakegate")
        self.folder, self.server, self.devices = folder, server, devices
        # The databases in which every device has received a push.
        self.filled: set[str] = set()
        fleet_process.build(folder)
        paths = push_load.paths(devices, seed=6)
        for count in GATEWAYS:
            for number in range(count):
                push_load.write(folder, f"uris{count}-{number}", paths[number::count], CONNECTIONS // count)

    def database(self, name: str) -> str:
        """Returns the address of the database with this name, and creates the database if necessary."""
        node = self.server.primary
        if not node.query(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
            node.query(f"CREATE DATABASE {name}")
        return self.server.address(database=name)

    def gateways(self, count: int, database: str) -> Gateways:
        place = tempfile.mkdtemp(prefix="gateways.", dir=self.folder)
        return Gateways(self.program, place, [self.database(database)] * count, {"policy": {}})

    # MARK: Pushes

    def push(self, gateways: Gateways, pushes: int, rate: int | None = None, logs: str | None = None) -> float:
        """Pushes evenly through all gateways at once, and returns the seconds that this took. `logs` is a folder in
        which the clients of each gateway write their own files."""
        count = len(gateways.all)

        def one(number: int) -> float:
            place = os.path.join(logs, str(number)) if logs else None
            if place:
                os.mkdir(place)
            return push_load.run(
                f"http://{gateways.all[number].plain}", self.folder, f"uris{count}-{number}", CONNECTIONS // count,
                STREAMS, pushes // count,
                rate=rate // CONNECTIONS if rate else None, logs=place,
            )  # fmt: skip

        with ThreadPoolExecutor(count) as pool:
            return max(pool.map(one, range(count)))

    def pushed(self, count: int, pushes: int) -> interleaved.Sample:
        """Measures the durable pushes a second through this number of gateways and their cost, with all devices
        registered."""
        database = f"pushes{count}"
        with self.gateways(count, database) as gateways:
            gateways.start()
            if database not in self.filled:
                self.push(gateways, self.devices)
                self.filled.add(database)
            pids = [gateway.pid for gateway in gateways.all]
            spent = sum(map(processes.cpu_seconds, pids))
            before = self.server.cpu_seconds()
            took = self.push(gateways, pushes)
            return {
                "perSecond": pushes / took,
                "ownMicroseconds": (sum(map(processes.cpu_seconds, pids)) - spent) / pushes * 1e6,
                "postgresMicroseconds": (self.server.cpu_seconds() - before) / pushes * 1e6,
            }

    def rates(self, runs: int, pushes: int) -> Table:
        """Runs the measurements alternately. All processes, including the load, may use the whole machine."""
        sides = {f"{count} gateway{'s' if count > 1 else ''}": partial(self.pushed, count, pushes) for count in GATEWAYS}
        samples = interleaved.run(runs, sides, between=durable_load.settle)
        rows = {name: interleaved.medians(values, 2) for name, values in samples.items()}
        return Table(
            f"Durable pushes on one PostgreSQL, fsync on, {self.devices:,} devices",
            ["", "a second", "gateway, CPU us", "PostgreSQL, CPU us"],
            [
                [name, f"{row['perSecond']:,.0f}", *(f"{row[f'{who}Microseconds']:.1f}" for who in ("own", "postgres"))]
                for name, row in rows.items()
            ],
        )

    # MARK: Wakes

    def latency(self, samples: int) -> list[float]:
        """Returns the sorted milliseconds from the 200 of a push at one gateway to its wake on an idle worker of
        another."""
        with self.gateways(2, "wakes") as gateways:
            gateways.start()
            # The first ones inform the gateways about each other's topics and slots.
            numbers = range(samples + WARM_UP)
            pairs = wake_latency.times(gateways.all[0].plain, gateways.all[1].plain, numbers, WARM_UP)
            return sorted(after for after, _ in pairs)

    def claims(self, pushes: int, connections: int = 8, slots: int = 256) -> dict:
        """Measures devices that wait for a worker: pushes at one gateway, then a fleet of workers that connects to
        another."""
        # The same number for each connection.
        pushes -= pushes % CONNECTIONS
        paths = [f"/3/device/{number:064x}" for number in range(pushes)]
        push_load.write(self.folder, "claims", paths, CONNECTIONS)
        with self.gateways(2, f"claims{slots}") as gateways:
            gateways.start()
            pushed, served = gateways.all
            push_load.run(f"http://{pushed.plain}", self.folder, "claims", CONNECTIONS, push_load.STREAMS, pushes)
            spent = [processes.cpu_seconds(gateway.pid) for gateway in gateways.all]
            before, started = self.server.cpu_seconds(), time.monotonic()
            with FleetProcess(self.folder, served.plain, push_load.TOPIC, connections, "lenient", slots=slots):
                waiting.until(lambda: wakes.completed(served.admin) >= pushes, CLAIM_SECONDS)
                took, done = time.monotonic() - started, wakes.completed(served.admin)
            spent = [processes.cpu_seconds(gateway.pid) - one for gateway, one in zip(gateways.all, spent)]
            return {
                "perSecond": round(done / took),
                "gatewayMicroseconds": round(sum(spent) / max(1, done) * 1e6, 1),
                "postgresMicroseconds": round((self.server.cpu_seconds() - before) / max(1, done) * 1e6, 1),
                "passed": done == pushes,
            }  # fmt: skip

    def wakes(self, samples: int) -> Table:
        """Measures latency and claims of wakes from one gateway to the workers of another."""
        values = self.latency(samples)
        claims = self.claims(min(CLAIMS, self.devices))
        single = self.claims(min(CLAIMS_ONE_BY_ONE, self.devices), connections=1, slots=1)
        median = statistics.median(values)
        table = Table("Wakes across gateways", ["", "", ""], [])
        table.rows = [
            ["push at one gateway, wake at another: p50", f"{median:.2f} ms",
             table.target(median < WAKE_MILLISECONDS_AIM)],
            ["the same, p99", f"{values[len(values) * 99 // 100]:.2f} ms", ""],
            ["claims of pending pushes, by workers of 2,048 slots", f"{claims['perSecond']:,} a second",
             table.target(claims["passed"])],
            ["the same, by a worker of one slot", f"{single['perSecond']:,} a second", table.target(single["passed"])],
            ["a claim, its wake and its result, gateways", f"{claims['gatewayMicroseconds']:.1f} CPU us", ""],
            ["the same, PostgreSQL", f"{claims['postgresMicroseconds']:.1f} CPU us", ""],
        ]
        table.notes.append(f"target: a p50 under {WAKE_MILLISECONDS_AIM} ms")
        return table

    # MARK: Many devices

    def large(self, minutes: float) -> list[Table]:
        """Measures one gateway after a push to every device: the latency of pushes in equal periods of at most five
        minutes, with vacuum running, and the sizes of the tables."""
        node, paths = self.server.primary, push_load.paths(self.devices, seed=6)
        periods = max(1, math.ceil(minutes / PERIOD))
        pushes = max(1, round(STEADY_RATE * minutes * 60 / periods / CONNECTIONS)) * CONNECTIONS
        title = f"One gateway and {self.devices:,} devices, {STEADY_RATE:,} pushes a second"
        table = Table(title, ["minutes", "p50", "p99", "database, MB"], [])
        p99s: list[int] = []
        with self.gateways(1, "large") as gateways:
            gateways.start()
            filled = self.push(gateways, self.devices)
            for number in range(periods):
                push_load.write(self.folder, "uris1-0", random.choices(paths, k=pushes), CONNECTIONS)
                with tempfile.TemporaryDirectory(prefix="wakegate-bench.", dir=steady_load.LOGS) as logs:
                    self.push(gateways, pushes, STEADY_RATE, logs)
                    took = sorted(value for log in glob.glob(f"{logs}/*/*") for value in steady_load.read(log).took)
                size = int(node.query("SELECT pg_database_size('large')")) / 1e6
                p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
                end = f"to {(number + 1) * minutes / periods:g}"
                table.rows.append([end, microseconds(p50), microseconds(p99), f"{size:,.0f}"])
                p99s.append(p99)
        target = table.target(p99s[-1] <= P99_RATIO_AIM * p99s[0])
        table.notes.append(f"last p99 at most {P99_RATIO_AIM} times the first: {target}; filled in {filled:.0f} s")
        sizes = ["", "MB", "indexes, MB", "rows", "dead", "vacuumed", "HOT"]
        return [table, Table("Its tables after that", sizes, [cells(node, name) for name in TABLES])]


def cells(node: postgres.Node, name: str) -> list[str]:
    """Returns the cells of a table: size with indexes, row count by the statistics, and number of vacuums."""
    node.query("SELECT pg_stat_clear_snapshot()", "large")
    told = node.query(
        f"SELECT pg_relation_size(relid), pg_indexes_size(relid), n_live_tup, n_dead_tup, autovacuum_count,"
        f" n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = 'wakegate' AND relname = '{name}'",
        "large",
    )
    size, indexes, live, dead, vacuums, updates, hot = map(int, told.split("|"))
    share = f"{hot / updates:.0%}" if updates else ""
    return [name, f"{size / 1e6:,.1f}", f"{indexes / 1e6:,.1f}", f"{live:,}", f"{dead:,}", str(vacuums), share]


def measure(options: argparse.Namespace, folder: str) -> list[Table]:
    """Runs all measurements. No process is pinned, and the load generator shares the machine."""
    durable_load.require_disk(folder)
    os.chmod(os.path.dirname(folder), 0o711)
    os.chmod(folder, 0o711)
    # A whole number of requests for each connection, for any number of gateways.
    pushes, devices = (count - count % (6 * CONNECTIONS) for count in (options.requests, options.devices))
    with postgres.Database(os.path.join(folder, "database"), 0, SETTINGS) as server:
        bench = Bench(options.products, folder, server, devices)
        return [bench.rates(options.runs, pushes), bench.wakes(options.samples), *bench.large(options.minutes)]
