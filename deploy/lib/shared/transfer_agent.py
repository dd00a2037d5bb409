"""A transfer agent (`wakegate transfers`) in a separate process, the server for its transfers, and a gateway that it
notifies."""

import hashlib
import http.server
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any

import httpx

from shared import processes, waiting

SERVER = os.path.join(os.path.dirname(__file__), "../../../Tests/EndToEndTests/Clients/transfer_server.py")
DEVICE, TOPIC = "0badcafe" * 8, "com.example.app"
QUICK = ("--set", "retry.first=0.05", "--set", "retry.last=0.2")


def digest(size: int, seed: str) -> str:
    """Returns the SHA-256 of the server's content for a size and a seed."""
    block = random.Random(seed).randbytes(min(size, 1 << 20))
    return hashlib.sha256((block * (size // max(1, len(block)) + 1))[:size]).hexdigest()


def digest_of(path: str) -> str:
    """Returns the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class TransferAgent(processes.Program):
    """An agent that is started, killed and started again on one state folder; requests go to its socket."""

    stop_seconds = 120

    def __init__(self, program: str, state: str, socket_path: str, *options: str):
        command = [program, "transfers", "--state", state, "--listen", f"unix:{socket_path}", *options]
        super().__init__(command, os.path.join(os.path.dirname(socket_path), "agent.log"))
        self.socket_path, self.state = socket_path, state
        transport = httpx.HTTPTransport(uds=socket_path, limits=httpx.Limits(max_connections=None))
        self.http = httpx.Client(transport=transport, base_url="http://localhost", timeout=60)

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = self.http.request(method, path, json=body)
        return answer.status_code, answer.json() if answer.text[:1] in ("{", "[") else answer.text

    def must(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.ask(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer

    def transfers(self, session: str) -> list[dict]:
        return self.must("GET", f"/v1/sessions/{session}/transfers?limit=10000")["transfers"]

    def wait_until_ended(self, session: str, seconds: float = 120) -> list[dict]:
        """Waits until no transfer is waiting or running, and returns the transfers."""

        def has_ended() -> bool:
            counts = self.must("GET", f"/v1/sessions/{session}")["transfers"]
            return counts["waiting"] + counts["running"] == 0

        if not waiting.until(has_ended, seconds, 0.05):
            raise RuntimeError("transfers have not ended")
        return self.transfers(session)


class TransferServer:
    """The server for transfers, in a separate process."""

    def __init__(self, folder: str):
        port_file = os.path.join(folder, "port")
        self.process = subprocess.Popen([sys.executable, SERVER, port_file])
        waiting.until(lambda: os.path.exists(port_file) or self.process.poll() is not None)
        with open(port_file, encoding="ascii") as file:
            self.base = f"http://127.0.0.1:{file.read()}"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self, path: str) -> Any:
        """Returns its answer as JSON."""
        return httpx.get(self.base + path, trust_env=False).json()


class CountingGateway(http.server.ThreadingHTTPServer):
    """A server that accepts session events like a gateway and keeps their ids; some answers are lost."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["content-length"])))
            event = (self.path, told["id"], told["finished"])
            if event not in self.server.events:
                self.server.events.append(event)
            if self.server.chance.random() >= self.server.lose:
                self.send_response(202)
                self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    def __init__(self, lose: float, chance: random.Random):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.lose, self.chance = lose, chance
        self.events: list[tuple[str, str, int]] = []
        self.base = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Stage:
    """A server, a gateway and an agent, running, in a separate folder; `state` is below it by default."""

    def __init__(
        self, program: str, *options: str, lose: float = 0.0, chance: random.Random | None = None, state: str = ""
    ):
        self.folder = tempfile.mkdtemp(prefix="wakegate-transfers-")
        self.server = TransferServer(self.folder)
        self.gateway = CountingGateway(lose, chance or random.Random(1))
        path = f"{self.folder}/socket"
        told = ("--gateway", self.gateway.base, *QUICK, *options)
        self.agent = TransferAgent(program, state or f"{self.folder}/state", path, *told)

    def __enter__(self) -> "Stage":
        self.agent.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.agent.kill()
        self.gateway.shutdown()
        self.gateway.server_close()
        self.server.stop()
        shutil.rmtree(self.folder)
