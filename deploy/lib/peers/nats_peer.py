"""NATS JetStream doing what comes next to a durable push: the last message of each subject is kept, and acknowledged.

NATS 2.9, as Debian 12 has it, syncs its files every two minutes and has no setting for that: what it acknowledges is in
the memory of the kernel, and lost with the power. (From 2.10 on, `sync_interval: always` syncs each.)
"""

import json
import os
import socket
import subprocess
import sys

from peers import durable_peers
from shared import interleaved, processes

STREAM = "DEVICES"
PROCESSES = 2
WAIT_SECONDS = 300


class NATS(processes.Server):
    """A stream on disk with a subject for each device, of which each keeps its last message."""

    name = "NATS"

    def __init__(self, folder: str, devices: int, payload: str):
        self.port, self.devices, self.payload = processes.free_port(), devices, payload
        path = os.path.join(folder, "nats.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""listen: "127.0.0.1:{self.port}"
jetstream {{ store_dir: "{folder}/jetstream", max_memory_store: 64MB, max_file_store: 8GB }}
""")
        super().__init__(["nats-server", "-c", path], os.path.join(folder, "nats.log"))
        self.wait_until("NATS", lambda: processes.accepts(self.port))
        self.create()

    def create(self) -> None:
        stream = {
            "name": STREAM, "subjects": ["device.*"], "retention": "limits", "storage": "file", "discard": "old",
            "max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0, "max_msgs_per_subject": 1,
            "num_replicas": 1,
        }  # fmt: skip
        body = json.dumps(stream)
        asked = f"SUB made 1\r\nPUB $JS.API.STREAM.CREATE.{STREAM} made {len(body)}\r\n{body}\r\n"
        answer = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=processes.START_SECONDS) as connection:
            connection.sendall(('CONNECT {"verbose":false}\r\n' + asked).encode())
            while b"MSG made" not in answer or not answer.endswith(b"}\r\n"):
                received = connection.recv(65536)
                if not received:
                    break
                answer += received
        if b'"did_create":true' not in answer:
            self.__exit__()
            self.fail(f"NATS did not make the stream: {answer[-300:]!r}")

    def rate(self, pushes: int, connections: int, streams: int) -> interleaved.Sample:
        """Publishes over that many connections, each with that many unacknowledged."""
        loads = []
        for number in range(PROCESSES):
            settings = {
                "seed": number, "port": self.port, "devices": self.devices, "payload": self.payload,
                "connections": connections // PROCESSES, "window": streams, "count": pushes // PROCESSES,
            }  # fmt: skip
            command = [sys.executable, "-m", "clients.nats_load", json.dumps(settings)]
            loads.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        if any(load.stdout.readline() != "ready\n" for load in loads):
            self.fail("the load on NATS did not start")
        for load in loads:
            load.stdin.write("go\n")
            load.stdin.flush()
        outputs = [load.communicate(timeout=WAIT_SECONDS)[0] for load in loads]
        if any(load.returncode for load in loads):
            self.fail("the load on NATS failed")
        answers = [json.loads(output) for output in outputs]
        took = max(answer["ended"] for answer in answers) - min(answer["began"] for answer in answers)
        done = pushes // PROCESSES // (connections // PROCESSES) * connections
        single = durable_peers.latency([value for answer in answers for value in answer["microseconds"]])
        return {"perSecond": done / took, "loadBusy": sum(each["cpuSeconds"] for each in answers) / took, **single}

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds(self.pid)
