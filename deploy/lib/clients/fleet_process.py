"""A process of workers (workers.c), controlled by another process."""

import json
import os
import select
import subprocess
import time

from shared import processes, waiting

CONNECT_SECONDS, WAIT_SECONDS, LOOK_SECONDS = 300, 300, 0.02
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers.c")


def build(folder: str) -> str:
    """Returns the program, and builds it if necessary."""
    return processes.compiled(SOURCE, os.path.join(folder, "workers"), "-lssl", "-lcrypto")


class FleetProcess:
    """Workers of a topic, which answer every wake immediately; ended when the block is left.

    `options` are options of the program, which is built in `folder`; `prefix` is prepended to its command line.
    """

    def __init__(
        self, folder: str, address: str, topic: str, connections: int, *options: str, slots: int = 1,
        prefix: tuple[str, ...] = (),
    ):  # fmt: skip
        command = [*prefix, build(folder), address.rsplit(":", 1)[1], topic, str(connections), str(slots), *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.unread = b""
        self.next("subscribed", CONNECT_SECONDS)

    def __enter__(self) -> "FleetProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self) -> dict:
        """Returns the number of wakes received and of results accepted so far."""
        self.process.stdin.write(b"?")
        self.process.stdin.flush()
        return self.next("answered", 10)

    def wait(self, wakes: int) -> None:
        """Waits until this number of results was answered since the start."""
        if not waiting.until(lambda: self.ask()["answered"] >= wakes, WAIT_SECONDS, LOOK_SECONDS):
            raise SystemExit(f"{self.ask()['answered']} of {wakes} wakes were answered; the run does not count")

    def next(self, key: str, seconds: float) -> dict:
        """Returns the next line, which must have `key`."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.unread:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            received = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not received:
                self.__exit__()
                raise SystemExit(f"the workers did not say \"{key}\" within {seconds:g} s")
            self.unread += received
        line, _, self.unread = self.unread.partition(b"\n")
        return json.loads(line)
