"""`wakegate serve` on one state folder, started and ended again and again."""

import json
import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass

START_SECONDS = 60
STOP_SECONDS = 30


class StartFailed(Exception):
    """The gateway ended, or said nothing, before it was ready."""

    def __init__(self, status: int | None, errors: str):
        super().__init__(f"exit status {status}: {errors.strip() or 'nothing on standard error'}")
        self.status, self.errors = status, errors


@dataclass
class Addresses:
    edge: str
    admin: str
    ca: str
    plain: str = ""


def make_certificates(program: str, folder: str) -> None:
    """Has `wakegate dev` make a certificate in `folder`, as `serve` only reads them."""
    command = [program, "dev", "--state", folder, "--set", "store=memory"]
    command += [word for name in ("edge", "admin") for word in (f"--{name}", "127.0.0.1:0")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        line = process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=STOP_SECONDS)
    if not line:
        raise SystemExit(f"wakegate dev made no certificates: {errors.decode()}")


class ServedGateway:
    """At most one process at a time; `addresses` are those of the one that runs."""

    def __init__(self, program: str, folder: str, settings: dict, state: str | None = None):
        """Settings add to the configuration; `state` is `folder`/state unless named."""
        self.folder = folder
        self.state = state or os.path.join(folder, "state")
        self.certificates = os.path.join(folder, "certificates")
        if not os.path.exists(self.certificates):
            make_certificates(program, self.certificates)
        self.configuration = {
            "edge": "127.0.0.1:0", "admin": "127.0.0.1:0", "state": self.state, "store": "sqlite", "drainTimeout": 1,
            "tls": {
                "certificate": os.path.join(self.certificates, "server.pem"),
                "key": os.path.join(self.certificates, "server.key"),
            },
            **settings,
        }  # fmt: skip
        self.file = os.path.join(folder, "wakegate.json5")
        self.write({})
        self.command = [program, "serve", "--config", self.file]
        self.log = os.path.join(folder, "gateway.log")
        self.process: subprocess.Popen | None = None
        self.addresses = Addresses("", "", os.path.join(self.certificates, "ca.pem"))

    @property
    def pid(self) -> int:
        return self.process.pid

    def write(self, changes: dict) -> None:
        """Writes the configuration with these settings instead of those of the same names; the next start takes it, or
        SIGHUP."""
        self.configuration |= changes
        with open(self.file, "w", encoding="utf-8") as output:
            json.dump(self.configuration, output, indent=2)

    def launch(self, environment: dict[str, str] | None = None) -> None:
        """Starts a process and does not wait until it is ready."""
        with open(self.log, "wb") as errors:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(environment or {})},
            )

    def start(self, environment: dict[str, str] | None = None) -> float:
        """Starts a process and waits for its ready line; seconds that took."""
        started = time.monotonic()
        self.launch(environment)
        ready, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            status = self.end(signal.SIGKILL) if not ready else self.wait()
            raise StartFailed(status, self.errors())
        took = time.monotonic() - started
        answer = json.loads(line)
        self.addresses.edge, self.addresses.admin = answer["edge"], answer["admin"]
        self.addresses.plain = answer.get("plain") or ""
        return took

    def end(self, with_signal: signal.Signals) -> int:
        """Sends a signal and waits for the end; the exit status, negative when a signal ended it."""
        if self.process is None or self.process.poll() is not None:
            return self.process.returncode if self.process else 0
        self.process.send_signal(with_signal)
        return self.wait()

    def wait(self) -> int:
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the gateway did not end within {STOP_SECONDS} s") from None
        self.process.stdout.close()
        return status

    def errors(self) -> str:
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()
