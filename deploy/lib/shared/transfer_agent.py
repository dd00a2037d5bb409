"""An agent `wakegate transfers` in a process of its own, the server that it transfers from, and a gateway that it tells."""

import hashlib
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SERVER = os.path.join(os.path.dirname(__file__), "../../../Tests/EndToEndTests/Clients/transfer_server.py")
DEVICE = "0badcafe" * 8


def digest(size: int, seed: str) -> str:
    """The SHA-256 of what the server makes of a size and a seed."""
    block = random.Random(seed).randbytes(min(size, 1 << 20))
    return hashlib.sha256((block * (size // max(1, len(block)) + 1))[:size]).hexdigest()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class TransferAgent:
    """Started, killed and started again on one state folder; requests go to its socket."""

    def __init__(self, program: str, state: str, socket_path: str, *options: str):
        self.command = [program, "transfers", "--state", state, "--listen", f"unix:{socket_path}", *options]
        self.socket_path, self.state = socket_path, state
        self.process: subprocess.Popen | None = None
        self.log_path = os.path.join(os.path.dirname(socket_path), "agent.log")

    def start(self) -> float:
        """Starts it and waits until it accepts; answers in how many seconds."""
        begun = time.monotonic()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline()
        if b'"ready"' not in line:
            with open(self.log_path, encoding="utf-8", errors="replace") as log:
                raise RuntimeError(f"the agent did not start: {log.read()[-2000:]}")
        return time.monotonic() - begun

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self) -> int:
        """Ends it in order; answers with its exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=120)
        self.process.stdout.close()
        return status

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = UnixConnection(self.socket_path)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"content-type": "application/json"} if text else {})
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content[:1] in (b"{", b"[") else content.decode()
        finally:
            connection.close()

    def must(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.ask(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return answer

    def transfers(self, session: str, state: str = "") -> list[dict]:
        query = f"?limit=10000&state={state}" if state else "?limit=10000"
        return self.must("GET", f"/v1/sessions/{session}/transfers{query}")["transfers"]

    def wait_until_ended(self, session: str, seconds: float = 120) -> list[dict]:
        """Waits until nothing waits or runs; the transfers then."""
        until = time.monotonic() + seconds
        while True:
            counts = self.must("GET", f"/v1/sessions/{session}")["transfers"]
            if counts["waiting"] + counts["running"] == 0:
                return self.transfers(session)
            if time.monotonic() > until:
                raise RuntimeError(f"transfers have not ended: {counts}")
            time.sleep(0.05)

    def cpu_seconds(self) -> float:
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            words = file.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class TransferServer:
    """The server that transfers are tried against, in a process of its own."""

    def __init__(self, folder: str):
        port_file = os.path.join(folder, "port")
        self.process = subprocess.Popen([sys.executable, SERVER, port_file])
        while not os.path.exists(port_file):
            if self.process.poll() is not None:
                raise RuntimeError("the server did not start")
            time.sleep(0.01)
        with open(port_file, encoding="ascii") as file:
            self.base = f"http://127.0.0.1:{file.read()}"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class CountingGateway:
    """Takes session events as a gateway does, and remembers their ids; now and then an answer is lost."""

    def __init__(self, lose: float = 0.0, chance: Any = None):
        events: list[tuple[str, str, int]] = []
        self.events = events
        self.requests = 0
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                gateway.requests += 1
                event = (self.path, body["id"], body["finished"])
                if event not in events:
                    events.append(event)
                if lose and chance.random() < lose:
                    self.close_connection = True
                    return
                self.send_response(202)
                self.send_header("content-length", "0")
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
