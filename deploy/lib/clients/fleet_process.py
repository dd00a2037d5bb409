"""A process of workers (workers.c), controlled by another process."""

import os
import subprocess

from shared import processes, waiting

WAIT_SECONDS, LOOK_SECONDS = 300, 0.02
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "workers.c")


def build(folder: str) -> str:
    """Returns the program, and builds it if necessary."""
    return processes.compiled(SOURCE, os.path.join(folder, "workers"), "-lssl", "-lcrypto")


class FleetProcess(processes.Program):
    """Workers of a topic, which answer every wake immediately; ended when the block is left.

    `options` are options of the program, which is built in `folder`; `prefix` is prepended to its command line.
    """

    standard_input = subprocess.PIPE
    start_seconds = 300

    def __init__(
        self, folder: str, address: str, topic: str, connections: int, *options: str, slots: int = 1,
        prefix: tuple[str, ...] = (),
    ):  # fmt: skip
        command = [*prefix, build(folder), address.rsplit(":", 1)[1], topic, str(connections), str(slots), *options]
        super().__init__(command, os.path.join(folder, f"{topic}.log"))
        self.start()

    def answered(self) -> int:
        """Returns the number of results accepted so far."""
        return self.ask(b"?")["answered"]

    def wait_for(self, wakes: int) -> None:
        """Waits until this number of results was answered since the start."""
        if not waiting.until(lambda: self.answered() >= wakes, WAIT_SECONDS, LOOK_SECONDS):
            raise SystemExit(f"{self.answered()} of {wakes} wakes were answered; the run does not count")
