"""Several gateways on one PostgreSQL: durable pushes a second beside the bare transaction, wakes from one gateway to
the workers of another, claims, and what many devices take of the database."""

import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from bench import durable_load, push_load, wakes
from bench.tables import Table, microseconds
from clients import h2load, http1, steady_load
from clients.fleet_process import CONNECT_SECONDS, FleetProcess
from cluster import postgres
from cluster.gateways import Gateways
from shared import interleaved, processes

GATEWAYS = (1, 2, 3)
# Divisible by each number of gateways, so that all have equal shares.
CONNECTIONS, STREAMS = 12, 256
# Rows a transaction and transactions at once, as in CLUSTER.md.
BARE_SHAPES = ((256, 4), (64, 8))
BARE_SECONDS = 5
RATIO_TARGET = 0.6
WAKE_MILLISECONDS_AIM = 20
CLAIMS = 20_000
# How long what waits may take to be claimed before the run is given up.
CLAIM_SECONDS = 120
# Of a worker that takes one wake after the other.
CLAIMS_ONE_BY_ONE = 2000
# What the database is to answer while it has all devices: so many pushes a second.
STEADY_RATE = 1000
TOPIC = "com.example.bench"
SETTINGS = {
    "shared_buffers": "'1GB'", "max_wal_size": "'8GB'", "checkpoint_timeout": "'30min'", "wal_log_hints": "off",
    "wal_keep_size": 0,
}  # fmt: skip
TABLES = ("device", "due", "ready", "wake", "push", "event", "bundle")
PUSH_FIELDS = f"apns-topic: {TOPIC}\r\napns-push-type: background\r\napns-priority: 5\r\n"


class Bench:
    """One server, a database for each kind of run, and folders for gateways."""

    def __init__(self, products: str, folder: str, server: postgres.Database, devices: int):
        self.program = os.path.join(products, "wakegate")
        self.folder, self.server, self.devices = folder, server, devices
        # Databases in which each device was pushed to.
        self.filled: set[str] = set()
        self.bare_program = os.path.join(folder, "bare_transaction")
        self.body = os.path.join(folder, "body")

    def prepare(self) -> None:
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bare_transaction.c")
        asked = ["pg_config", "--includedir"]
        include = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(["cc", "-O2", f"-I{include}", "-o", self.bare_program, source, "-lpq"], check=True)
        push_load.write_pushes(self.folder, "all", self.devices, 1, seed=6)
        with open(os.path.join(self.folder, "all.0"), encoding="ascii") as file:
            paths = [line.strip().removeprefix("https://127.0.0.1") for line in file]
        for count in GATEWAYS:
            for number in range(count):
                h2load.write_paths(self.folder, f"uris{count}-{number}", paths[number::count], CONNECTIONS // count)

    def database(self, name: str) -> str:
        """The address of a database of that name, made when there is none."""
        node = self.server.primary
        if not node.query(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
            node.query(f"CREATE DATABASE {name}")
        return self.server.address(database=name)

    def gateways(self, count: int, database: str) -> Gateways:
        place = tempfile.mkdtemp(prefix="gateways.", dir=self.folder)
        return Gateways(self.program, place, [self.database(database)] * count, {"policy": {}})

    # MARK: Pushes

    def bare(self, rows: int, lanes: int) -> interleaved.Sample:
        """Rows a second of the bare transaction, and what each costs."""
        self.database("bare")
        where = f"{self.server.primary.source()} dbname=bare"
        words = [self.bare_program, where, str(self.devices), str(rows), str(lanes), str(BARE_SECONDS)]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
            # It says when its tables are filled: what that costs is not counted.
            process.stdout.readline()
            before = self.server.cpu_seconds()
            own = processes.cpu_seconds(process.pid)
            line = process.stdout.readline()
            if not line:
                raise SystemExit("the bare transaction failed")
            told = json.loads(line)
            spent, own = self.server.cpu_seconds() - before, processes.cpu_seconds(process.pid) - own
            process.stdin.close()
        return {
            "perSecond": told["rows"] / told["seconds"], "ownMicroseconds": own / told["rows"] * 1e6,
            "postgresMicroseconds": spent / told["rows"] * 1e6,
        }  # fmt: skip

    def push(self, gateways: Gateways, pushes: int, rate: int | None = None, logs: str | None = None) -> float:
        """Pushes through all gateways at once, evenly; the seconds that took."""
        count = len(gateways.all)

        def one(number: int) -> float:
            return h2load.run(
                f"http://{gateways.edge(number)}", os.path.join(self.folder, f"uris{count}-{number}"), self.body,
                push_load.headers(), CONNECTIONS // count, STREAMS, pushes // count,
                rate=rate // CONNECTIONS if rate else None, logs=logs,
            )  # fmt: skip

        with ThreadPoolExecutor(count) as pool:
            return max(pool.map(one, range(count)))

    def pushed(self, count: int, pushes: int) -> interleaved.Sample:
        """Durable pushes a second through so many gateways, and what each costs: all devices are there before, as
        for the bare transaction."""
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
        """Interleaved: the bare transaction in two shapes, and gateways. Everybody has the machine, load included."""
        sides = {f"bare, {rows} rows x {lanes}": (lambda rows=rows, lanes=lanes: self.bare(rows, lanes))
                 for rows, lanes in BARE_SHAPES}  # fmt: skip
        for count in GATEWAYS:
            name = f"{count} gateway{'s' if count > 1 else ''}"
            sides[name] = lambda count=count: self.pushed(count, pushes)
        samples = interleaved.run(runs, sides, between=durable_load.settle)
        rows = {name: interleaved.medians(values, 2) for name, values in samples.items()}
        bare = max(row["perSecond"] for name, row in rows.items() if name.startswith("bare"))
        best = max(row["perSecond"] / bare for name, row in rows.items() if not name.startswith("bare"))
        table = Table(
            f"Durable pushes on one PostgreSQL, fsync on, {self.devices:,} devices",
            ["", "a second", "of bare", "client or gateway, CPU us", "PostgreSQL, CPU us"],
            [
                [
                    name, f"{row['perSecond']:,.0f}", f"{row['perSecond'] / bare:.2f}", f"{row['ownMicroseconds']:.1f}",
                    f"{row['postgresMicroseconds']:.1f}",
                ]
                for name, row in rows.items()
            ],
        )  # fmt: skip
        note = f"best of the gateways: {best:.2f} of the bare transaction; target: {RATIO_TARGET:g} or more"
        table.notes.append(f"{note}  {table.target(best >= RATIO_TARGET)}")
        return table

    # MARK: Wakes

    def latency(self, samples: int) -> list[float]:
        """Milliseconds from the 200 of a push at one gateway to its wake on an idle worker of another, in order."""
        with self.gateways(2, "wakes") as gateways:
            gateways.start()
            return sorted(asyncio.run(wake_times(gateways.edge(0), gateways.edge(1), samples)))

    def claims(self, pushes: int, connections: int = 8, slots: int = 256) -> dict:
        """Devices that wait for a worker, pushed to at one gateway, and a fleet that comes to another."""
        # As many for each connection.
        pushes -= pushes % CONNECTIONS
        place = os.path.join(self.folder, "claims")
        paths = [f"/3/device/{number:064x}" for number in range(pushes)]
        h2load.write_paths(self.folder, "claims", paths, CONNECTIONS)
        with self.gateways(2, f"claims{slots}") as gateways:
            gateways.start()
            h2load.run(f"http://{gateways.edge(0)}", place, self.body, push_load.headers(), CONNECTIONS, 32, pushes)
            spent = [processes.cpu_seconds(gateway.pid) for gateway in gateways.all]
            before, started = self.server.cpu_seconds(), time.monotonic()
            deadline = started + CLAIM_SECONDS
            with FleetProcess(address=gateways.edge(1), ca=None, topic=TOPIC, connections=connections, slots=slots,
                              by_device=False, is_strict=False) as fleet:  # fmt: skip
                fleet.next("subscribed", CONNECT_SECONDS)
                while (done := wakes.completed(gateways.admin(1))) < pushes and time.monotonic() < deadline:
                    time.sleep(0.02)
                took = time.monotonic() - started
            spent = [processes.cpu_seconds(gateway.pid) - one for gateway, one in zip(gateways.all, spent)]
            return {
                "perSecond": round(done / took),
                "gatewayMicroseconds": round(sum(spent) / max(1, done) * 1e6, 1),
                "postgresMicroseconds": round((self.server.cpu_seconds() - before) / max(1, done) * 1e6, 1),
                "passed": done == pushes,
            }  # fmt: skip

    def wakes(self, samples: int) -> Table:
        """Latency and claims of wakes from one gateway to the workers of another."""
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

    def large(self, minutes: float) -> Table:
        """What the tables take once every device was pushed to, and how long a push takes then, vacuum running."""
        node = self.server.primary
        with self.gateways(3, "large") as gateways:
            gateways.start()
            filled = self.push(gateways, self.devices)
            pushes = max(CONNECTIONS, round(STEADY_RATE * minutes * 60))
            with tempfile.TemporaryDirectory(prefix="wakegate-bench.", dir=steady_load.LOGS) as logs:
                # Each gateway's clients write files of their own.
                places = [os.path.join(logs, str(number)) for number in range(3)]
                for place in places:
                    os.mkdir(place)

                def one(number: int) -> float:
                    return h2load.run(
                        f"http://{gateways.edge(number)}", os.path.join(self.folder, f"uris3-{number}"), self.body,
                        push_load.headers(), CONNECTIONS // 3, STREAMS, pushes // 3, rate=STEADY_RATE // CONNECTIONS,
                        logs=places[number],
                    )  # fmt: skip

                with ThreadPoolExecutor(3) as pool:
                    list(pool.map(one, range(3)))
                took = sorted(value for place in places for log in os.scandir(place)
                              for value in steady_load.read(log.path).took)  # fmt: skip
        log = int(node.query("SELECT sum(size)::bigint FROM pg_ls_waldir()")) / 1e6
        p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
        return Table(
            f"The database with {self.devices:,} devices",
            ["", "MB", "indexes, MB", "rows", "dead", "vacuumed", "HOT"],
            [cells(node, name) for name in TABLES],
            [
                f"{STEADY_RATE:,} pushes a second for {minutes:g} minutes: p50 {microseconds(p50)}, "
                f"p99 {microseconds(p99)}; log: {log:,.0f} MB",
                f"filled in {filled:.0f} s",
            ],
        )


def cells(node: postgres.Node, name: str) -> list[str]:
    """Of a table: its size with its indexes, its rows by count of the statistics, and how often it was vacuumed."""
    node.query("SELECT pg_stat_clear_snapshot()", "large")
    told = node.query(
        f"SELECT pg_relation_size(relid), pg_indexes_size(relid), n_live_tup, n_dead_tup, autovacuum_count,"
        f" n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE schemaname = 'wakegate' AND relname = '{name}'",
        "large",
    )
    size, indexes, live, dead, vacuums, updates, hot = map(int, told.split("|"))
    share = f"{hot / updates:.0%}" if updates else ""
    return [name, f"{size / 1e6:,.1f}", f"{indexes / 1e6:,.1f}", f"{live:,}", f"{dead:,}", str(vacuums), share]


async def wake_times(pushed_to: str, served_by: str, samples: int) -> list[float]:
    """Milliseconds of each sample; a new device each."""
    worker = await http1.Connection.open(served_by)
    provider, results = await http1.Connection.open(pushed_to), await http1.Connection.open(served_by)
    arrived: asyncio.Queue[tuple[float, str]] = asyncio.Queue()

    async def listen() -> None:
        async for event in worker.events(f"/v1/topics/{TOPIC}/wakes?slots=16&name=bench"):
            if event.startswith(b"event: wake"):
                at = time.monotonic()
                wake = next(line[3:].strip() for line in event.split(b"\n") if line.startswith(b"id:"))
                arrived.put_nowait((at, wake.decode()))

    listening = asyncio.create_task(listen())
    values = []
    # The first ones tell the gateways of each other's topics and slots, and do not count.
    warm = 20
    await asyncio.sleep(2)
    for number in range(samples + warm):
        status, _, content = await provider.request(
            "POST", f"/3/device/{number:064x}", PUSH_FIELDS, push_load.payload()
        )
        answered = time.monotonic()
        if status != 200:
            raise SystemExit(f"a push was answered {status} {content!r}")
        at, wake = await asyncio.wait_for(arrived.get(), 10)
        if number >= warm:
            values.append((at - answered) * 1000)
        await results.request("POST", f"/v1/wakes/{wake}", "", b'{"result":"newData"}')
    listening.cancel()
    for connection in (worker, provider, results):
        connection.close()
    return values


def measure(
    products: str, folder: str, runs: int, pushes: int, samples: int, devices: int, minutes: float
) -> list[Table]:
    """Nobody is pinned; the load generator has its share of the machine, and libpq's program its own."""
    durable_load.require_disk(folder)
    os.chmod(os.path.dirname(folder), 0o711)
    os.chmod(folder, 0o711)
    # Whole numbers of requests for each connection, whatever the number of gateways.
    pushes -= pushes % (6 * CONNECTIONS)
    devices -= devices % (6 * CONNECTIONS)
    with postgres.Database(os.path.join(folder, "database"), 0, SETTINGS) as server:
        bench = Bench(products, folder, server, devices)
        bench.prepare()
        return [bench.rates(runs, pushes), bench.wakes(samples), bench.large(minutes)]
