"""CPU a gigabyte of the transfers agent, 64 downloads at a time and synced, beside curl's own in the same run."""

import os
import resource
import shutil
import socket
import statistics
import subprocess
import threading
import time

from shared.transfer_agent import TransferAgent

FILES, MEGABYTES = 64, 32
RATIO_TARGET = 1.2


class FileServer:
    """Answers every GET with the same bytes, from the kernel's cache; a thread a connection."""

    def __init__(self, path: str):
        self.path, self.size = path, os.path.getsize(path)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.base = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        head = f'HTTP/1.1 200 OK\r\ncontent-length: {self.size}\r\netag: "a"\r\n\r\n'.encode()
        rest = b""
        with connection, open(self.path, "rb") as file:
            while True:
                while b"\r\n\r\n" not in rest:
                    part = connection.recv(65536)
                    if not part:
                        return
                    rest += part
                rest = rest.split(b"\r\n\r\n", 1)[1]
                try:
                    connection.sendall(head)
                    connection.sendfile(file, 0)
                except OSError:
                    return

    def stop(self) -> None:
        self.listener.close()


def children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def curl(server: FileServer, folder: str) -> dict:
    """One curl for all of them, and then a sync of each file, as the agent makes one."""
    os.mkdir(folder)
    outputs = [f"{folder}/{number}" for number in range(FILES)]
    words = [word for output in outputs for word in ("--output", output, f"{server.base}/{os.path.basename(output)}")]
    begun, wall = children(), time.monotonic()
    command = ["curl", "--silent", "--fail", "--parallel", "--parallel-max", str(FILES), "--parallel-immediate"]
    subprocess.run([*command, *words], check=True, stderr=subprocess.DEVNULL)
    alone = children() - begun
    subprocess.run(["sync", *outputs], check=True)
    found = {"alone": alone, "synced": children() - begun, "seconds": time.monotonic() - wall}
    shutil.rmtree(folder)
    return found


def agent(program: str, server: FileServer, folder: str) -> dict:
    os.mkdir(folder)
    transfers = TransferAgent(program, f"{folder}/state", f"{folder}/socket", "--set", f"limits.running={FILES}")
    transfers.start()
    try:
        settings = {"connectionsPerHost": FILES, "sendsLaunchEvents": False}
        transfers.must("PUT", "/v1/sessions/s", settings)
        begun, wall = transfers.cpu_seconds(), time.monotonic()
        for number in range(FILES):
            body = {"kind": "download", "url": f"{server.base}/{number}"}
            transfers.must("POST", "/v1/sessions/s/transfers", body)
        while transfers.must("GET", "/v1/sessions/s")["transfers"]["finished"] < FILES:
            time.sleep(0.2)
        return {"synced": transfers.cpu_seconds() - begun, "seconds": time.monotonic() - wall}
    finally:
        transfers.kill()
        shutil.rmtree(folder)


def measure(products: str, folder: str, runs: int) -> dict:
    source = os.path.join(folder, "source")
    with open(source, "wb") as file:
        for _ in range(MEGABYTES):
            file.write(os.urandom(1 << 20))
    server = FileServer(source)
    gigabytes = FILES * os.path.getsize(source) / 1e9
    program = os.path.join(products, "wakegate")
    ours, theirs = [], []
    try:
        for number in range(runs):
            theirs.append(curl(server, f"{folder}/curl{number}"))
            ours.append(agent(program, server, f"{folder}/agent{number}"))
    finally:
        server.stop()

    def median(rows: list[dict], key: str) -> float:
        return statistics.median(row[key] for row in rows) / gigabytes

    ratio = median(ours, "synced") / median(theirs, "synced")
    return {
        "runs": runs, "gigabytes": round(gigabytes, 2), "files": FILES,
        "agentSeconds": round(median(ours, "synced"), 3), "curlSeconds": round(median(theirs, "synced"), 3),
        "curlAloneSeconds": round(median(theirs, "alone"), 3), "ratio": round(ratio, 2),
        "agentWallSeconds": round(median(ours, "seconds"), 2), "curlWallSeconds": round(median(theirs, "seconds"), 2),
        "passed": ratio <= RATIO_TARGET,
    }  # fmt: skip
