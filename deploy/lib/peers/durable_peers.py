"""Redis and PostgreSQL doing what a durable push does: token to payload, the latest wins, and a count of the others.

Both are set up to sync every answer, as the gateway does, and get their work handed in the ways that suit them best:
Redis pipelined, PostgreSQL in prepared statements of 100 rows. Neither has providers to talk to: no HTTP, no TLS, no
JSON.
"""

import csv
import glob
import math
import os
import pwd
import re
import shutil
import subprocess
import time
from typing import Protocol

from shared import interleaved, processes

ROWS_A_STATEMENT = 100
APNS_ID = "9d3220fe-444b-633e-d1f1-5d0dcb4f537a"
EXPIRY = "1999999999"

# One upsert. Counters, registration, conditions and the launch policy, which the gateway has besides, are left out.
REDIS_UPSERT = """
local old = redis.call('HMGET', KEYS[1], 'coalesced', 'priority', 'expiry')
local coalesced, priority, expiry = 0, tonumber(ARGV[3]), tonumber(ARGV[4])
if old[1] then
  coalesced = tonumber(old[1]) + 1
  priority = math.max(priority, tonumber(old[2]))
  expiry = math.max(expiry, tonumber(old[3]))
end
redis.call('HSET', KEYS[1], 'payload', ARGV[1], 'apnsID', ARGV[2],
  'coalesced', coalesced, 'priority', priority, 'expiry', expiry)
return coalesced
"""

TABLE = """
CREATE TABLE device (
  token bytea PRIMARY KEY, payload bytea NOT NULL, apns_id uuid NOT NULL, coalesced integer NOT NULL,
  priority smallint NOT NULL, expiry bigint NOT NULL
) WITH (fillfactor = 50)
"""


class Store(Protocol):
    """What is compared: `rate` gives `perSecond`, and of single upserts `p50` and `p99` in microseconds."""

    name: str

    def rate(self, pushes: int, connections: int, streams: int) -> interleaved.Sample: ...

    def cpu_seconds(self) -> float: ...


def latency(microseconds: list[float]) -> interleaved.Sample:
    ordered = sorted(microseconds)
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100]} if ordered else {}


def postgres_upsert(devices: int, count: int) -> str:
    """A pgbench script: random devices and payloads in one prepared statement, in an order that cannot deadlock."""
    names = [f"t{number}" for number in range(count)]
    drawn = "\n".join(f"\\set {name} random(1, {devices})" for name in names)
    rows = ", ".join(f"(:{name}::integer, :payload::text)" for name in names)
    return f"""{drawn}
INSERT INTO device AS old
SELECT DISTINCT ON (number) sha256(int4send(number)), convert_to(payload, 'UTF8'), '{APNS_ID}', 0, 5, {EXPIRY}
  FROM (VALUES {rows}) AS pushes(number, payload) ORDER BY number
ON CONFLICT (token) DO UPDATE SET payload = excluded.payload, apns_id = excluded.apns_id,
  coalesced = old.coalesced + 1, priority = greatest(old.priority, excluded.priority),
  expiry = greatest(old.expiry, excluded.expiry);
"""


class Redis(processes.Server):
    """Redis with its append-only file synced before every answer."""

    name = "Redis"

    def __init__(self, folder: str, devices: int, payload: str, prefix: list[str] | None = None):
        self.port, self.devices, self.payload = processes.free_port(), devices, payload
        # Debian keeps the server's program in redis-tools, under another name; the service that would start it is not.
        command = [
            "redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", folder, "--save", "",
            "--appendonly", "yes", "--appendfsync", "always",
        ]  # fmt: skip
        wrapped = [*(prefix or []), "bash", "-c", 'exec -a redis-server "$(command -v redis-check-rdb)" "$@"', *command]
        super().__init__(wrapped, os.path.join(folder, "redis.log"))
        self.wait_until("Redis", lambda: self.cli("PING") == "PONG")
        self.script = self.cli("SCRIPT", "LOAD", REDIS_UPSERT)

    def cli(self, *words: str) -> str:
        command = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    def rate(self, pushes: int, connections: int, streams: int) -> interleaved.Sample:
        """Upserts over that many connections, each with that many in the pipeline."""
        command = [
            "redis-benchmark", "-p", str(self.port), "-c", str(connections), "-P", str(streams), "-n", str(pushes),
            "-r", str(self.devices), "--csv", "EVALSHA", self.script, "1", "device:__rand_int__", self.payload,
            APNS_ID, "5", EXPIRY,
        ]  # fmt: skip
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
        if "rror" in output:
            raise SystemExit(f"redis-benchmark: {output}")
        told = list(csv.DictReader(output[output.index('"test"') :].splitlines()))[-1]
        single = {name: float(told[f"{name}_latency_ms"]) * 1000 for name in ("p50", "p99")} if streams == 1 else {}
        return {"perSecond": float(told["rps"]), **single}

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds(self.pid)


class Postgres(processes.Server):
    """PostgreSQL with synchronous commits, memory for the whole table, and no checkpoint by size while measured."""

    name = "PostgreSQL"

    def __init__(self, folder: str, devices: int, payload: str):
        self.folder, self.payload = folder, payload
        self.programs = os.path.dirname(sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))[-1])
        self.unprivileged = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self.unprivileged:
            shutil.chown(folder, pwd.getpwnam("postgres").pw_uid)
        data = os.path.join(folder, "data")
        initialise = [*self.unprivileged, self.program("initdb"), "-D", data, "-A", "trust", "-U", "postgres"]
        subprocess.run(initialise, check=True, stdout=subprocess.DEVNULL, cwd=folder)
        settings = {
            "listen_addresses": "", "unix_socket_directories": folder, "fsync": "on", "synchronous_commit": "on",
            "shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min",
        }  # fmt: skip
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        # Without runuser between, so that signals and the CPU clock are the server's own.
        user = {"user": "postgres"} if self.unprivileged else {}
        super().__init__([self.program("postgres"), "-D", data, *words], os.path.join(folder, "postgres.log"), **user)
        ready = [self.program("pg_isready"), "-q", "-h", folder]
        self.wait_until("PostgreSQL", lambda: subprocess.run(ready, check=False).returncode == 0)
        create = ["psql", "-q", "-h", folder, "-U", "postgres", "-c", TABLE]
        subprocess.run(create, check=True)
        for count in (1, ROWS_A_STATEMENT):
            with open(self.script(count), "w", encoding="utf-8") as file:
                file.write(postgres_upsert(devices, count))

    def script(self, count: int) -> str:
        return os.path.join(self.folder, f"upsert{count}.sql")

    def program(self, name: str) -> str:
        return os.path.join(self.programs, name)

    def rate(self, pushes: int, connections: int, streams: int) -> interleaved.Sample:
        """Rows, with as many statements on their way as make as many rows as the others have; single ones by
        themselves."""
        count = ROWS_A_STATEMENT if streams > 1 else 1
        clients = max(1, connections * streams // count)
        logs = os.path.join(self.folder, "times")
        shutil.rmtree(logs, ignore_errors=True)
        os.mkdir(logs)
        command = [
            self.program("pgbench"), "-h", self.folder, "-U", "postgres", "-n", "-M", "prepared", "-j", "2",
            "-D", f"payload={self.payload}", "-f", self.script(count), "-c", str(clients),
            "-t", str(math.ceil(pushes / count / clients)), "--log", f"--log-prefix={logs}/times", "postgres",
        ]  # fmt: skip
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
        if "number of failed transactions: 0" not in output:
            raise SystemExit(f"pgbench: {output}")
        times = [float(line.split()[2]) for log in os.scandir(logs) for line in open(log.path, encoding="ascii")]
        rate = float(re.search(r"tps = ([\d.]+) \(without", output).group(1)) * count
        return {"perSecond": rate, **(latency(times) if streams == 1 else {})}

    def cpu_seconds(self) -> float:
        """Of all its processes: those that ended are in its children's times, those that run have their own."""
        ticks = 0
        for process in [self.pid, *self.children()]:
            try:
                with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += sum(int(value) for value in fields[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")

    def children(self) -> list[int]:
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]


def disk_of(folder: str) -> str:
    """The kind of file system `folder` lies on."""
    return subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=True).stdout.strip()


def settle() -> None:
    """Lets what the run before left to write reach the disk, so that it is not counted against the next."""
    os.sync()
    time.sleep(0.2)
