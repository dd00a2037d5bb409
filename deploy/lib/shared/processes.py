"""Servers under measurement: starting them, stopping them, and reading their CPU clocks."""

import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable

START_SECONDS = 20
STOP_SECONDS = 15


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def cpu_seconds(pid: int) -> float:
    """The CPU time of all threads of a process, by its CPU clock (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def resident_megabytes(pid: int) -> float:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Server:
    """A child process in a folder of its own; ended when the block is left."""

    def __init__(self, command: list[str], log: str, reads_output: bool = False):
        with open(log, "wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if reads_output else errors,
                stderr=errors,
            )
        self.log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def wait_until(self, name: str, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready():
            if time.monotonic() > deadline or self.process.poll() is not None:
                self.__exit__()
                self.fail(f"{name} did not start")
            time.sleep(0.01)

    def fail(self, message: str) -> None:
        with open(self.log, encoding="utf-8", errors="replace") as file:
            raise SystemExit(f"{message}; its log ends:\n{file.read()[-2000:]}")


class Gateway(Server):
    """`wakegate dev` on free ports; `edge`, `plain` and `admin` are its addresses, HOST:PORT."""

    def __init__(self, products: str, folder: str, prefix: list[str], settings: list[str]):
        self.state = os.path.join(folder, "state")
        free = [word for name in ("edge", "plain", "admin") for word in (f"--{name}", "127.0.0.1:0")]
        sets = [word for setting in settings for word in ("--set", setting)]
        program = os.path.join(products, "wakegate")
        command = [*prefix, program, "dev", "--quiet", "--state", self.state, *free, *sets]
        super().__init__(command, os.path.join(folder, "gateway.log"), reads_output=True)
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.__exit__()
            self.fail("the gateway did not start")
        addresses = json.loads(line)
        self.edge, self.plain, self.admin = addresses["edge"], addresses["plain"], addresses["admin"]

    @property
    def ca(self) -> str:
        return os.path.join(self.state, "ca.pem")


class Nghttpd(Server):
    """nghttpd with one empty file, `3/device`; `address` is HOST:PORT. TLS when given a key and a certificate."""

    def __init__(self, folder: str, prefix: list[str], key_and_certificate: tuple[str, str] | None):
        root = os.path.join(folder, "files")
        os.makedirs(os.path.join(root, "3"), exist_ok=True)
        with open(os.path.join(root, "3", "device"), "wb"):
            pass
        port = free_port()
        tls = list(key_and_certificate) if key_and_certificate else []
        options = [] if key_and_certificate else ["--no-tls"]
        command = [*prefix, "nghttpd", *options, "-d", root, "-n", "1", "-m", "256", str(port), *tls]
        super().__init__(command, os.path.join(folder, f"nghttpd-{port}.log"))
        self.address = f"127.0.0.1:{port}"
        self.wait_until("nghttpd", lambda: accepts(port))
