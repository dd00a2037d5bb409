"""A process of workers (clients.worker_fleet), started and asked from another process."""

import json
import os
import select
import subprocess
import sys
import time

CONNECT_SECONDS = 300


class FleetProcess:
    """A process of workers; ended when the block is left."""

    def __init__(self, **settings: object):
        command = [sys.executable, "-m", "clients.worker_fleet", json.dumps(settings)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.unread = b""

    def __enter__(self) -> "FleetProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self) -> dict:
        """How many wakes came, results counted, and connections were lost so far."""
        self.process.stdin.write(b"?")
        self.process.stdin.flush()
        return self.next("answered", 10)

    def next(self, key: str, seconds: float) -> dict:
        """The next line with `key` in it."""
        deadline = time.monotonic() + seconds
        while True:
            while b"\n" in self.unread:
                line, _, self.unread = self.unread.partition(b"\n")
                fields = json.loads(line)
                if fields.keys() == {"lost"}:
                    raise SystemExit(f"{fields['lost']} workers lost their connections")
                if key in fields:
                    return fields
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            received = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not received:
                raise SystemExit(f"the workers did not say \"{key}\" within {seconds:g} s")
            self.unread += received
