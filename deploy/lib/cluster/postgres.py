"""Real PostgreSQL servers: a primary with standbys, each in a separate folder, killed, promoted and restored."""

import contextlib
import glob
import os
import pwd
import shutil
import signal
import subprocess

from shared import processes, waiting

WAIT_SECONDS = 60
SUPERUSER = "postgres"
DATABASE = "wakegate"
# The port is only on the command line, because pg_rewind and pg_basebackup copy this file between servers.
SETTINGS = {
    "listen_addresses": "'127.0.0.1'", "unix_socket_directories": "''", "max_connections": 100, "fsync": "on",
    "synchronous_commit": "on", "wal_level": "replica", "wal_log_hints": "on", "full_page_writes": "on",
    "hot_standby": "on", "wal_keep_size": "'512MB'", "max_wal_size": "'1GB'", "shared_buffers": "'128MB'",
    "wal_receiver_timeout": "'5s'", "wal_sender_timeout": "'5s'", "wal_retrieve_retry_interval": "'200ms'",
}  # fmt: skip


class PostgresFault(Exception):
    """A program of PostgreSQL failed, or a server did not reach the required state."""


def programs() -> str:
    return os.path.dirname(sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))[-1])


def unprivileged() -> dict[str, str]:
    """Returns the user for PostgreSQL, which refuses to run as root."""
    return {"user": SUPERUSER} if os.geteuid() == 0 else {}


def run(command: list[str], folder: str) -> str:
    """Runs a program of PostgreSQL, and returns its output."""
    command = [os.path.join(programs(), command[0]), *command[1:]]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **unprivileged()
    )
    if done.returncode != 0:
        raise PostgresFault(f"{' '.join(command[:3])} ended with {done.returncode}: {done.stderr[-1500:]}")
    return done.stdout.strip()


def wait_until(what: str, condition) -> None:
    if not waiting.until(condition, WAIT_SECONDS):
        raise PostgresFault(f"{what}: not within {WAIT_SECONDS} s")


def alive(pid: int) -> bool:
    try:
        return processes.statistics(pid)[0] != "Z"
    except OSError:
        return False


class Node:
    """One server: at most one process at a time, always on the same port."""

    def __init__(self, folder: str, name: str):
        self.name, self.folder, self.port = name, os.path.join(folder, name), processes.free_port()
        os.mkdir(self.folder)
        if unprivileged():
            shutil.chown(self.folder, pwd.getpwnam(SUPERUSER).pw_uid)
        self.data, self.log = os.path.join(self.folder, "data"), os.path.join(self.folder, "log")

    # MARK: The server's process

    def initialise(self, settings: dict[str, object]) -> None:
        run(["initdb", "-D", self.data, "-A", "trust", "-U", SUPERUSER, "--no-sync"], self.folder)
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            file.writelines(f"{name} = {value}\n" for name, value in {**SETTINGS, **settings}.items())

    def start(self) -> None:
        """Starts the server and returns once it accepts queries."""
        options = ["-l", self.log, "-o", f"-p {self.port}", "-t", str(WAIT_SECONDS)]
        try:
            run(["pg_ctl", "start", "-w", "-s", "-D", self.data, *options], self.folder)
        except PostgresFault as fault:
            raise PostgresFault(f"{self.name} did not start: {fault}: {self.log_end()}") from None

    def pids(self) -> list[int]:
        """Returns the process ids of the server and its children; empty if it does not run."""
        with contextlib.suppress(OSError, ValueError):
            with open(os.path.join(self.data, "postmaster.pid"), encoding="ascii") as file:
                pid = int(file.readline())
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                return [pid, *map(int, file.read().split())]
        return []

    def is_running(self) -> bool:
        return any(map(alive, self.pids()))

    def kill(self) -> None:
        """Kills every process at once, like the failure of a machine."""
        pids = self.pids()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(f"end of {self.name}", lambda: not any(map(alive, pids)))

    def stop(self) -> None:
        """Shuts down in fast mode: open transactions are rolled back."""
        run(["pg_ctl", "stop", "-w", "-s", "-m", "fast", "-D", self.data, "-t", str(WAIT_SECONDS)], self.folder)

    def log_end(self) -> str:
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-1500:]

    # MARK: Questions and settings

    def query(self, sql: str, database: str = "postgres") -> str:
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port), "-U", SUPERUSER]
        return run([*command, "-d", database, "-c", sql], self.folder)

    def cpu_seconds(self) -> float:
        """Returns the CPU seconds of all its processes, whether ended or running."""
        ticks = 0
        for pid in self.pids():
            with contextlib.suppress(OSError):
                ticks += sum(map(int, processes.statistics(pid)[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    # MARK: Replication

    def source(self) -> str:
        return f"host=127.0.0.1 port={self.port} user={SUPERUSER}"

    def copy(self, primary: "Node") -> None:
        """Replaces the data by a new copy of the primary."""
        shutil.rmtree(self.data, ignore_errors=True)
        where = f"{primary.source()} application_name={self.name}"
        options = ["-R", "-X", "stream", "-c", "fast", "--no-sync"]
        run(["pg_basebackup", "-D", self.data, "-d", where, *options], self.folder)

    def follow(self, primary: "Node") -> None:
        """Makes a running standby follow another primary."""
        where = f"{primary.source()} application_name={self.name}"
        self.query(f"ALTER SYSTEM SET primary_conninfo = '{where}'")
        self.query("SELECT pg_reload_conf()")

    def rewind(self, primary: "Node") -> None:
        """Removes the changes that only this former primary has."""
        where = f"{primary.source()} dbname=postgres application_name={self.name}"
        run(["pg_rewind", "-R", "-D", self.data, f"--source-server={where}", "--no-sync"], self.folder)

    def received(self) -> int:
        """Returns the position up to which a standby has its primary's log on disk, in bytes."""
        return int(self.query("SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint") or 0)


class Database:
    """A primary and its standbys; each commit waits for one standby. Without standbys, a single server."""

    def __init__(self, folder: str, standbys: int, settings: dict[str, object]):
        os.makedirs(folder, exist_ok=True)
        self.nodes = [Node(folder, f"node{number}") for number in range(1 + standbys)]
        self.primary = self.nodes[0]
        self.rewound = self.copied = 0
        self.settings = settings

    def __enter__(self) -> "Database":
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.kill()

    def start(self) -> None:
        self.primary.initialise(self.settings)
        self.primary.start()
        self.primary.query(f"CREATE DATABASE {DATABASE}")
        for node in self.standbys:
            node.copy(self.primary)
            node.start()
        self.wait_for_standbys()
        if self.standbys:
            for node in self.nodes:
                node.query("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
                node.query("SELECT pg_reload_conf()")

    @property
    def standbys(self) -> list[Node]:
        return [node for node in self.nodes if node is not self.primary]

    def wait_for_standbys(self) -> None:
        count = str(len(self.standbys))
        asked = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        wait_until("standbys", lambda: self.primary.query(asked) == count)

    def address(self, ports: list[int] | None = None, database: str = DATABASE) -> str:
        """Returns the address for gateways; with these ports instead of the servers' own, if given."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports or [node.port for node in self.nodes])
        return f"postgresql://{SUPERUSER}@{hosts}/{database}?target_session_attrs=read-write"

    def promote_most_advanced(self) -> Node:
        """Promotes the standby that has most of the former primary's log. The others follow it, because its commits
        wait for one of them. Returns when both are done."""
        chosen = max(self.standbys, key=Node.received)
        chosen.query("SELECT pg_promote(true, 60)")
        self.former, self.primary = self.primary, chosen
        for node in self.standbys:
            if node is not self.former:
                node.follow(chosen)
        return chosen

    def bring_back(self) -> None:
        """Makes the former primary a standby: with pg_rewind, or if that fails, with a new copy."""
        # pg_rewind reads the new timeline from the data of the last checkpoint.
        self.primary.query("CHECKPOINT")
        try:
            self.former.rewind(self.primary)
            self.former.start()
            self.wait_for_standbys()
            self.rewound += 1
        except PostgresFault:
            self.former.kill()
            self.former.copy(self.primary)
            self.former.start()
            self.copied += 1
        self.wait_for_standbys()

    def cpu_seconds(self) -> float:
        return sum(node.cpu_seconds() for node in self.nodes)
