"""Programs that are started and ended, once or repeatedly, and the kernel's figures about their processes."""

import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any

from shared import waiting

# A folder for temporary files in memory; None if there is none.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def compiled(source: str, program: str, *options: str) -> str:
    """Builds a C file unless it is already built; returns the path of the program or library."""
    if not os.path.exists(program):
        subprocess.run(["cc", "-O2", "-o", program, source, *options], check=True)
    return program


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
    """Returns the CPU time of all threads of a process, from its CPU clock (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def move(pid: int, cores: set[int]) -> None:
    """Lets every thread of a process run on these cores."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), cores)


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def statistics(process: int | str) -> list[str]:
    """Returns the fields of proc_pid_stat(5) from the state on; for a thread, pass PID/task/TID. Raises OSError if
    it has ended."""
    with open(f"/proc/{process}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].decode().split()


class StartFailed(Exception):
    """The program ended, or timed out, before it was ready."""

    def __init__(self, status: int | None, errors: str):
        super().__init__(f"exit status {status}: {errors.strip()[-2000:] or 'nothing on standard error'}")
        self.status, self.errors = status, errors


class Program(contextlib.AbstractContextManager):
    """A program that writes one line of JSON when it is ready, and its errors to a file. It has at most one process
    at a time, which is ended when the block is left."""

    reads_output = True
    standard_input = subprocess.DEVNULL
    start_seconds, answer_seconds, stop_seconds = 60, 10, 30

    def __init__(self, command: list[str], log: str, folder: str | None = None):
        """`folder` is its working directory; the default is the current one."""
        self.command, self.log, self.place = command, log, folder
        self.process: subprocess.Popen | None = None
        # The text of the line.
        self.ready: dict = {}

    @property
    def pid(self) -> int:
        return self.process.pid

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(AssertionError):
            self.end(signal.SIGTERM)

    def launch(self, environment: dict[str, str] | None = None) -> None:
        """Starts a process and does not wait until it is ready."""
        with open(self.log, "wb") as errors:
            self.process = subprocess.Popen(
                self.command,
                stdin=self.standard_input,
                stdout=subprocess.PIPE if self.reads_output else errors,
                stderr=errors,
                cwd=self.place,
                env={**os.environ, **(environment or {})},
            )

    def start(self, environment: dict[str, str] | None = None) -> float:
        """Starts a process and waits for its ready line; returns the seconds that this took."""
        started = time.monotonic()
        self.launch(environment)
        line = self.line(self.start_seconds)
        if not line:
            status = self.end(signal.SIGKILL) if line is None else self.wait()
            raise StartFailed(status, self.errors())
        self.ready = json.loads(line)
        return time.monotonic() - started

    def line(self, seconds: float) -> bytes | None:
        """Returns the next line of the output; empty at its end, and None if it timed out."""
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline() if ready else None

    def ask(self, text: bytes) -> Any:
        """Writes a text to the standard input, and returns the answer, a line of JSON."""
        self.process.stdin.write(text)
        self.process.stdin.flush()
        line = self.line(self.answer_seconds)
        if not line:
            raise SystemExit(f"{self.command[0]} did not answer within {self.answer_seconds} s: {self.errors()}")
        return json.loads(line)

    def end(self, with_signal: int) -> int:
        """Sends a signal and waits for the end; returns the exit status, which is negative after a signal."""
        if self.process is None or self.process.poll() is not None:
            return self.process.returncode if self.process else 0
        self.process.send_signal(with_signal)
        return self.wait()

    def wait(self) -> int:
        try:
            status = self.process.wait(self.stop_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.command[0]} did not end within {self.stop_seconds} s") from None
        if self.process.stdout:
            self.process.stdout.close()
        return status

    def errors(self) -> str:
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()


class Server(Program):
    """A program without a ready line, which is polled instead."""

    reads_output = False

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        self.launch()
        waiting.until(lambda: is_ready() or self.process.poll() is not None, self.start_seconds, 0.01)
        if not is_ready():
            raise StartFailed(self.end(signal.SIGKILL), self.errors())


def development(program: str, state: str, *options: str) -> list[str]:
    """Returns the command of `wakegate dev` on free ports."""
    free = [word for name in ("edge", "plain", "admin") for word in (f"--{name}", "127.0.0.1:0")]
    return [program, "dev", "--quiet", "--state", state, *free, *options]


class Gateway(Program):
    """A running `wakegate dev`; `edge`, `plain` and `admin` are its addresses, HOST:PORT."""

    def __init__(self, products: str, folder: str, prefix: list[str], settings: list[str]):
        self.state = os.path.join(folder, "state")
        sets = [word for setting in settings for word in ("--set", setting)]
        command = development(os.path.join(products, "wakegate"), self.state, *sets)
        super().__init__([*prefix, *command], os.path.join(folder, "gateway.log"))
        self.start()
        self.edge, self.plain, self.admin = (self.ready[name] for name in ("edge", "plain", "admin"))

    @property
    def ca(self) -> str:
        return os.path.join(self.state, "ca.pem")


class Nghttpd(Server):
    """nghttpd with one empty file, `3/device`; `address` is HOST:PORT. It uses TLS if given a key and a certificate."""

    def __init__(self, folder: str, prefix: list[str], key_and_certificate: tuple[str, str] | None):
        root = os.path.join(folder, "files")
        os.makedirs(os.path.join(root, "3"), exist_ok=True)
        pathlib.Path(root, "3", "device").touch()
        port = free_port()
        tls = list(key_and_certificate) if key_and_certificate else []
        options = [] if key_and_certificate else ["--no-tls"]
        command = [*prefix, "nghttpd", *options, "-d", root, "-n", "1", "-m", "256", str(port), *tls]
        super().__init__(command, os.path.join(folder, f"nghttpd-{port}.log"))
        self.address = f"127.0.0.1:{port}"
        self.wait_until(lambda: accepts(port))
