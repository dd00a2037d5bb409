"""The transfers agent in single scenes, each with one thing that goes wrong: what the suite runs of it."""

import argparse
import hashlib
import http.client
import json
import os
import random
import resource
import shutil
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from shared.transfer_agent import DEVICE, CountingGateway, TransferAgent, TransferServer, UnixConnection, digest
from shared.verdicts import Verdicts
from soak import transfers

NOBODY = 65_534
QUICK = ("--set", "retry.first=0.05", "--set", "retry.last=0.2")


class Scene:
    """A server, a gateway and an agent with one session `s`."""

    def __init__(self, program: str, *options: str, lose: float = 0.0):
        self.folder = tempfile.mkdtemp(prefix="wakegate-scene-")
        self.server = TransferServer(self.folder)
        self.gateway = CountingGateway(lose, random.Random(1))
        state, path = f"{self.folder}/state", f"{self.folder}/socket"
        self.agent = TransferAgent(program, state, path, "--gateway", self.gateway.url, *QUICK, *options)

    def __enter__(self) -> "Scene":
        self.agent.start()
        self.agent.must("PUT", "/v1/sessions/s", {"device": DEVICE, "topic": "com.example.app"})
        return self

    def __exit__(self, *_: object) -> None:
        if self.agent.process.poll() is None:
            self.agent.kill()
        self.gateway.stop()
        self.server.stop()
        shutil.rmtree(self.folder)

    def download(self, path: str, **more: object) -> str:
        url = path if path.startswith("http") else self.server.base + path
        body = {"kind": "download", "url": url, **more}
        return self.agent.must("POST", "/v1/sessions/s/transfers", body)["transfer"]

    def shown(self, transfer: str) -> dict:
        return self.agent.must("GET", f"/v1/sessions/s/transfers/{transfer}")

    def until(self, transfer: str, holds, seconds: float = 120) -> dict:
        """Waits until something holds of a transfer; the transfer then."""
        until = time.monotonic() + seconds
        while not holds(found := self.shown(transfer)):
            if time.monotonic() > until:
                raise RuntimeError(f"it has not come to that: {found}")
            time.sleep(0.02)
        return found

    def ended(self, transfer: str, seconds: float = 120) -> dict:
        return self.until(transfer, lambda found: found["state"] not in ("waiting", "running"), seconds)

    def log(self) -> list[list]:
        connection = http.client.HTTPConnection(self.server.base.removeprefix("http://"))
        connection.request("GET", "/log")
        return json.loads(connection.getresponse().read())

    def commits(self) -> int:
        """How often the agent has committed."""
        return int(self.agent.ask("GET", "/metrics")[1].split("\nwakegate_transfers_commits_total ")[1].split("\n")[0])

    def wait(self, holds) -> bool:
        """Waits until something holds, at most two minutes."""
        until = time.monotonic() + 120
        while not holds() and time.monotonic() < until:
            time.sleep(0.02)
        return bool(holds())

    def log_text(self) -> str:
        """What the agent has logged."""
        with open(self.agent.log_path, encoding="utf-8") as log:
            return log.read()

    def content(self, transfer: str) -> str:
        place = f"{self.folder}/{transfer}"
        self.agent.must("POST", f"/v1/sessions/s/transfers/{transfer}/take", {"to": place})
        with open(place, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()


def entities(program: str, verdicts: Verdicts) -> None:
    with Scene(program) as scene:
        cut = scene.download("/entity/300000/a?cut=100000")
        found = scene.ended(cut)
        verdicts.equal("what is cut is gone on with", f"{found}", (found["state"], found["attempts"]), ("finished", 3))
        verdicts.equal("what is cut is gone on with", "the content", scene.content(cut), digest(300_000, "a"))
        ranges = [line[2] for line in scene.log() if "cut=100000" in line[1]]
        verdicts.equal("what is cut is gone on with", "the ranges", ranges, [None, "bytes=100000-", "bytes=200000-"])
        changed = scene.download("/entity/300000/b?cut=200000&change=1")
        found = scene.ended(changed)
        verdicts.equal("a changed entity begins anew", f"{found}", found["state"], "finished")
        verdicts.equal("a changed entity begins anew", "content", scene.content(changed), digest(300_000, "bTrue"))
        plain = scene.download("/entity/400000/c?noranges=1&rate=400000")
        scene.until(plain, lambda now: now["bytes"] > 50_000)
        scene.agent.kill()
        scene.agent.start()
        found = scene.ended(plain)
        verdicts.equal("a server without ranges begins anew", f"{found}", found["state"], "finished")
        verdicts.equal("a server without ranges begins anew", "content", scene.content(plain), digest(400_000, "c"))
        verdicts.equal("an agent's end is no attempt", f"{found}", found["attempts"], 1)
        lying = scene.ended(scene.download("/entity/5000/d?lie=7"))
        verdicts.equal("a lying length fails", f"{lying}", (lying["error"] or {}).get("reason"), "WrongLength")
        wrong = scene.ended(scene.download("/entity/5000/e", sha256="0" * 64))
        verdicts.equal("a wrong checksum fails", f"{wrong}", (wrong["error"] or {}).get("reason"), "BadChecksum")
        large = scene.ended(scene.download("/entity/5000/f", bytesMax=4999))
        verdicts.equal("more than bytesMax fails", f"{large}", (large["error"] or {}).get("reason"), "TooLarge")
        missing = scene.ended(scene.download("/entity/1/g?status=404"))
        verdicts.equal("a 404 is final", f"{missing}", (missing["status"], missing["attempts"]), (404, 1))
        served = f"{scene.server.base}".replace("127.0.0.1", "localhost")
        away = scene.download(
            f"/entity/1/h?redirect={served}/entity/7/i", headers={"authorization": "Bearer secret", "x-other": "1"}
        )
        scene.ended(away)
        told = {line[1].split("?")[0]: line[3] for line in scene.log()}
        verdicts.equal("authorization goes to no other host", "here", told.get("/entity/1/h"), "Bearer secret")
        verdicts.equal("authorization goes to no other host", "there", told.get("/entity/7/i", ""), None)
        loop = scene.ended(scene.download("/entity/1/j?loop=1"))
        verdicts.equal("redirects have an end", f"{loop}", loop["error"]["reason"], "TooManyRedirects")
        file = scene.ended(scene.download("/entity/1/k?redirect=file:///etc/passwd"))
        verdicts.equal("a redirect to a file is refused", f"{file}", file["error"]["reason"], "ForbiddenProtocol")
        scene.agent.must("PUT", "/v1/sessions/s", {"requestTimeout": 1})
        stalled = scene.download("/entity/100000/l?stall=30")
        found = scene.until(stalled, lambda now: now["attempts"] >= 1)
        verdicts.equal("a silent server is left", f"{found}", found["error"]["reason"], "ConnectionFailed")
        verdicts.equal("SIGTERM ends it in order", "the status", scene.agent.stop(), 0)
        kept = b""
        for name in ("transfers.sqlite", "transfers.sqlite-wal"):
            if os.path.exists(f"{scene.folder}/state/{name}"):
                with open(f"{scene.folder}/state/{name}", "rb") as file:
                    kept += file.read()
        there = b"/entity/300000/a" in kept and b"Bearer secret" not in kept
        verdicts.check("secrets go with their transfer", there, "the store has them")


class RawServer:
    """Answers each path with bytes that no good server sends; remembers the header fields of every request."""

    def __init__(self):
        self.answers: dict[str, object] = {}
        self.requests: list[dict[str, str]] = []
        raw = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                path = self.rfile.readline().split(b" ")[1].decode()
                fields: dict[str, str] = {}
                while (line := self.rfile.readline().decode("latin-1").strip()) != "":
                    name, value = line.split(":", 1)
                    fields[name.lower()] = value.strip()
                raw.requests.append(fields)
                self.rfile.read(int(fields.get("content-length", 0)))
                answer = raw.answers[path]
                try:
                    for part in answer(fields) if callable(answer) else [answer]:
                        self.wfile.write(part.encode("latin-1"))
                except OSError:
                    pass

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> "RawServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def answer(status: str, body: str = "", *fields: str) -> str:
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", body])


SECRETS = ("authorization", "cookie", "private-token", "x-amz-security-token", "x-api-key")


def servers(program: str, verdicts: Verdicts) -> None:
    """Servers that do what they should not."""
    with Scene(program) as scene, RawServer() as raw, RawServer() as other:

        def mixed(fields: dict[str, str]) -> list[str]:
            # Knows ranges, and not If-Range; what is there is another after the first answer, of the same length.
            if "range" in fields:
                first = int(fields["range"].split("=")[1].split("-")[0])
                part = f"Content-Range: bytes {first}-49999/50000"
                return [answer("206 Partial Content", "B" * (50_000 - first), part, 'ETag: "two"')]
            whole = answer("200 OK", "B" * 50_000, 'ETag: "two"')
            return [whole] if len(raw.requests) > 1 else [whole.replace("two", "one").replace("B", "A")[:-30_000]]

        raw.answers["/mixed"] = mixed
        found = scene.ended(scene.download(raw.base + "/mixed"))
        whole = scene.content(found["transfer"]) == hashlib.sha256(b"B" * 50_000).hexdigest()
        verdicts.check("parts of two entities make no file", whole, f"{found}")

        other.answers["/there"] = answer("200 OK", "there")
        raw.answers["/away"] = answer("302 Found", "", f"Location: {other.base}/there")
        fields = dict.fromkeys(SECRETS, "s3cret") | {"accept": "text/plain"}
        found = scene.ended(scene.download(raw.base + "/away", headers=fields))
        told = [name for name in fields if name in other.requests[-1]]
        verdicts.equal("no secret goes to another host", f"{found}", told, ["accept"])

        raw.answers["/spaced"] = answer("302 Found", "", f"Location: {raw.base}/a film")
        raw.answers["/a%20film"] = answer("200 OK", "film")
        found = scene.ended(scene.download(raw.base + "/spaced"))
        verdicts.equal("a redirect with a space is followed", f"{found}", found["state"], "finished")

        raw.answers["/busy"] = answer("503 Busy", "x" * 200_000, "Retry-After: 3600")
        found = scene.until(scene.download(raw.base + "/busy"), lambda now: now["attempts"] == 1)
        wait = found["nextAttemptAt"] / 1000 - time.time()
        verdicts.check("a busy server is left alone, however long its answer", wait > 3000, f"{wait} s")

        raw.answers["/odd"] = "HTTP/1.1 200 OK\r\nContent-Length: 0x10\r\n\r\n0123456789abcdef"
        found = scene.ended(scene.download(raw.base + "/odd"))
        verdicts.equal("a length that is none fails", f"{found}", (found["error"] or {}).get("reason"), "WrongLength")

        def endless(_: dict[str, str]):
            yield "HTTP/1.1 200 OK\r\n\r\n"
            while True:
                yield "x" * 65_536

        raw.answers["/endless"] = endless
        path = f"{scene.folder}/up"
        with open(path, "wb") as file:
            file.write(b"u" * 100_000)
        body = {"kind": "upload", "url": raw.base + "/endless", "file": path}
        found = scene.ended(scene.agent.must("POST", "/v1/sessions/s/transfers", body)["transfer"])
        verdicts.equal("an upload does not wait for an answer's end", f"{found}", found["state"], "finished")


def states(program: str, verdicts: Verdicts) -> None:
    """What a state folder may come to, and what callers are told of it."""
    with Scene(program) as scene:
        found = scene.ended(scene.download("/entity/1000/a"))
        place = f"/v1/sessions/s/transfers/{found['transfer']}"
        status, told = scene.agent.ask("POST", f"{place}/take", {"to": f"{scene.agent.state}/lock", "replace": True})
        verdicts.equal("nothing is taken into the state folder", f"{told}", (status, told["reason"]), (400, "BadPath"))
        body = {"to": scene.agent.socket_path, "replace": True}
        status, told = scene.agent.ask("POST", f"{place}/take", body)
        verdicts.equal("no file takes the place of a socket", f"{told}", (status, told["reason"]), (400, "BadPath"))
        events = Events(scene, "s")
        cancelled = scene.download("/entity/4000000/c?rate=400000")
        scene.agent.must("DELETE", f"/v1/sessions/s/transfers/{cancelled}")
        events.until("idle")
        events.close()
        connection = UnixConnection(scene.agent.socket_path)
        connection.request("PATCH", "/v1/sessions/s")
        refusal = connection.getresponse()
        allowed = sorted((refusal.getheader("allow") or "").split(", "))
        verdicts.equal("a 405 names what is allowed", "the methods", allowed, ["DELETE", "GET", "PUT"])
        connection.close()
        # As on a full disk: what is asked is answered, with what there is or why it cannot be told.
        resource.prlimit(scene.agent.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        scene.agent.ask("PUT", "/v1/sessions/t", {})
        for path in ("/v1/sessions", "/v1/sessions/s", "/v1/sessions/s/transfers", place, "/v1/sessions/s/events"):
            verdicts.equal("nobody waits for a full disk", path, scene.agent.ask("GET", path)[0], 507)
        fault = scene.agent.must("GET", "/v1/status")["storeFault"]
        verdicts.check("the status says that the disk is full", bool(fault), f"{fault}")
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(scene.agent.process.pid, resource.RLIMIT_FSIZE, unlimited)
        while scene.agent.ask("GET", "/healthz")[0] != 200:
            time.sleep(0.02)
        for name in os.listdir(f"{scene.agent.state}/files"):
            os.unlink(f"{scene.agent.state}/files/{name}")
        status, told = scene.agent.ask("POST", f"{place}/take", {"to": f"{scene.folder}/gone"})
        verdicts.equal("a file that is gone is told", f"{told}", (status, told["reason"]), (410, "FileGone"))
        scene.ended(scene.download("/entity/1000/b"))
        scene.agent.stop()
        for name in os.listdir(scene.agent.state):
            if name.startswith("transfers.sqlite"):
                os.unlink(f"{scene.agent.state}/{name}")
        try:
            scene.agent.start()
            verdicts.check("files are not lost with their database", False, "the agent started")
        except RuntimeError as refused:
            verdicts.check("files are not lost with their database", "put the one back" in str(refused), f"{refused}")
        left = len(os.listdir(f"{scene.agent.state}/files"))
        verdicts.equal("files are not lost with their database", "files", left, 1)


def readers(program: str, verdicts: Verdicts) -> None:
    """Lists that are longer than one answer, and who follows without reading."""
    with Scene(program) as scene:
        idle = socket.socket(socket.AF_UNIX)
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.connect(scene.agent.socket_path)
        idle.sendall(b"GET /v1/sessions/s/events HTTP/1.1\r\nhost: a\r\n\r\n")
        missing = scene.server.base + "/entity/1/a?status=404&" + "q" * 8000
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(scene.download, [missing] * 200))
        scene.agent.wait_until_ended("s")
        # What is written next finds that it has read nothing.
        until = time.monotonic() + 120
        while "wakegate_transfers_listeners 0" not in scene.agent.ask("GET", "/metrics")[1]:
            if time.monotonic() > until:
                break
            scene.ended(scene.download("/entity/1/b"))
        left = "wakegate_transfers_listeners 0" in scene.agent.ask("GET", "/metrics")[1]
        verdicts.check("who does not read is left", left, "it is still followed")
        until = time.monotonic() + 120
        while not scene.gateway.events and time.monotonic() < until:
            time.sleep(0.02)
        verdicts.check("who did not read is woken", bool(scene.gateway.events), "nobody was woken")
        idle.close()
        with ThreadPoolExecutor(8) as pool:
            # A control character takes six in JSON: more than the 8 MiB of a page.
            list(pool.map(lambda note: scene.download(missing, note=note), ["\x01" * 1000] * 1600))
        seen: list[str] = []
        pages, after = 0, ""
        while True:
            page = scene.agent.must("GET", f"/v1/sessions/s/transfers?limit=10000{after}")
            pages += 1
            seen += [transfer["transfer"] for transfer in page["transfers"]]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        counts = scene.agent.must("GET", "/v1/sessions/s")["transfers"]
        verdicts.equal("a long list comes in pages", f"{pages}", len(set(seen)), sum(counts.values()))
        verdicts.check("a long list comes in pages", pages > 1 and len(seen) == len(set(seen)), f"{pages} pages")


def uploads(program: str, verdicts: Verdicts) -> None:
    with Scene(program) as scene:
        path = f"{scene.folder}/up"
        with open(path, "wb") as file:
            file.write(random.Random(5).randbytes(3_000_000))
        for target in ("/upload/a", "/upload/b?redirect=/upload/c"):
            body = {"kind": "upload", "url": scene.server.base + target, "file": path}
            found = scene.ended(scene.agent.must("POST", "/v1/sessions/s/transfers", body)["transfer"])
            verdicts.equal("an upload arrives", f"{found}", (found["state"], found["bytes"]), ("finished", 3_000_000))
        for name in ("a", "c"):
            connection = http.client.HTTPConnection(scene.server.base.removeprefix("http://"))
            connection.request("GET", f"/upload/{name}")
            told = json.loads(connection.getresponse().read())
            with open(path, "rb") as file:
                sent = hashlib.sha256(file.read()).hexdigest()
            verdicts.equal("an upload arrives", name, (told or {}).get("sha256"), sent)
        body = {"kind": "upload", "url": scene.server.base + "/upload/d", "file": path + ".missing"}
        found = scene.ended(scene.agent.must("POST", "/v1/sessions/s/transfers", body)["transfer"])
        verdicts.equal("a file that is not there", f"{found}", found["error"]["reason"], "FileUnreadable")


def space(program: str, verdicts: Verdicts) -> None:
    with Scene(program, "--set", "limits.stateBytes=1000000") as scene:
        found = scene.ended(scene.download("/entity/1200000/a"))
        verdicts.equal("what does not fit fails at once", f"{found}", found["error"]["reason"], "NoSpace")
        verdicts.check("the missing bytes are told", "200000" in found["error"]["message"], f"{found['error']}")
        found = scene.ended(scene.download("/entity/900000/b"))
        verdicts.equal("what fits is taken", f"{found}", found["state"], "finished")
    with Scene(program) as scene:
        # A write beyond the limit fails as on a full disk.
        resource.prlimit(scene.agent.process.pid, resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
        found = scene.ended(scene.download("/entity/3000000/c"))
        verdicts.equal("a disk that fills up is told", f"{found}", found["error"]["reason"], "NoSpace")
        found = scene.ended(scene.download("/entity/1000000/d"))
        verdicts.equal("what fits goes on", f"{found}", found["state"], "finished")
    with Scene(program) as scene:
        resource.prlimit(scene.agent.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        # The first finds out, the second is refused at once; neither waits for space, and neither is done later.
        body = {"kind": "download", "url": scene.server.base + "/entity/10/d"}
        for _ in range(2):
            status, told = scene.agent.ask("POST", "/v1/sessions/s/transfers", body)
            verdicts.equal("what cannot be stored is refused", f"{told}", (status, told["reason"]), (507, "NoSpace"))
        verdicts.equal("a full disk is no health", "the status", scene.agent.ask("GET", "/healthz")[0], 503)
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(scene.agent.process.pid, resource.RLIMIT_FSIZE, unlimited)
        until = time.monotonic() + 120
        while scene.agent.ask("GET", "/healthz")[0] != 200 and time.monotonic() < until:
            time.sleep(0.02)
        verdicts.equal("what was refused is not done later", "transfers", scene.agent.transfers("s"), [])
        verdicts.equal("with space all goes on", "state", scene.ended(scene.download("/entity/10/d"))["state"], "finished")
    with Scene(program) as scene:
        shutil.rmtree(f"{scene.folder}/state/files")
        found = scene.ended(scene.download("/entity/100000/e"))
        verdicts.equal("a folder that has vanished is made again", f"{found}", found["state"], "finished")
        whole = scene.content(found["transfer"]) == digest(100_000, "e")
        verdicts.check("a folder that has vanished is made again", whole, "the content is another")


def callers(program: str, verdicts: Verdicts) -> None:
    with Scene(program) as scene:
        mode = os.stat(scene.agent.socket_path).st_mode & 0o777
        verdicts.equal("the socket is its user's alone", "the mode", mode, 0o600)
        second = subprocess.run(scene.agent.command, capture_output=True, text=True, timeout=60)
        verdicts.check(
            "a second agent is refused by name",
            second.returncode == 1 and "another transfers agent is using" in second.stderr,
            f"{second.returncode} {second.stderr}",
        )
        if os.getuid() != 0:
            return verdicts.skip("another user's caller is refused", "only root can be another user")
        os.chmod(scene.folder, 0o755)
        os.chmod(scene.agent.socket_path, 0o666)
        source = (
            "import socket,sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
            "s.sendall(b'GET /v1/status HTTP/1.1\\r\\nhost: a\\r\\nconnection: close\\r\\n\\r\\n');"
            "print(s.recv(65536).decode())"
        )
        asked = subprocess.run(
            [sys.executable, "-c", source, scene.agent.socket_path],
            capture_output=True, text=True, user=NOBODY, timeout=60, cwd="/",
        )  # fmt: skip
        refused = " 403 " in asked.stdout.split("\r\n")[0] + " "
        verdicts.check("another user's caller is refused", refused, f"{asked.stdout} {asked.stderr}")
        # Lines are written by a thread of their own.
        until = time.monotonic() + 120
        while not (is_logged := f"callerRefused user={NOBODY}" in scene.log_text()) and time.monotonic() < until:
            time.sleep(0.02)
        verdicts.check("another user's caller is logged", is_logged, "no line")


def followers(program: str, verdicts: Verdicts) -> None:
    """Followers and connections of one user, as many as there may be and one more."""
    with Scene(program, "--set", "limits.followers=3") as scene:
        events = [Events(scene, "s") for _ in range(3)]
        status, told = scene.agent.ask("GET", "/v1/sessions/s/events")
        found = (status, told["reason"])
        verdicts.equal("there are so many followers of a user", f"{told}", found, (429, "TooManyStreams"))
        verdicts.check("the limit is named", "limits.followers" in told["message"], f"{told}")
        is_logged = scene.wait(lambda: "limitMet limit=limits.followers" in scene.log_text())
        verdicts.check("the limit is logged", is_logged, "no line")
        verdicts.equal("status requests still succeed", "the status", scene.agent.ask("GET", "/v1/status")[0], 200)
        events.pop().close()
        followed = scene.wait(lambda: "wakegate_transfers_listeners 2" in scene.agent.ask("GET", "/metrics")[1])
        verdicts.check("who leaves makes room", followed, "it is still followed")
        events.append(Events(scene, "s"))
        # Connections that ask once and stay.
        held, status = [], 200
        while status == 200 and len(held) < 2000:
            connection = UnixConnection(scene.agent.socket_path)
            connection.request("GET", "/v1/status")
            answer = connection.getresponse()
            told, status = answer.read(), answer.status
            held.append(connection)
        verdicts.equal("there are so many connections of a user", f"{told}", status, 429)
        for connection in held[:2]:
            connection.close()
        answered = scene.wait(lambda: scene.agent.ask("GET", "/v1/status")[0] == 200)
        verdicts.check("a connection that is closed makes room", answered, "no answer")
        for connection in held:
            connection.close()
        for follower in events:
            follower.close()


class Events:
    """Follows a session's events."""

    def __init__(self, scene: Scene, session: str):
        self.connection = UnixConnection(scene.agent.socket_path)
        self.connection.request("GET", f"/v1/sessions/{session}/events")
        self.answer = self.connection.getresponse()
        self.events: list[tuple[str, dict]] = []
        self.read()

    def read(self) -> tuple[str, dict]:
        name = ""
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                self.events.append((name, json.loads(line[6:])))
                self.answer.readline()
                return self.events[-1]

    def until(self, name: str) -> None:
        while self.read()[0] != name:
            pass

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


def sessions(program: str, verdicts: Verdicts) -> None:
    with Scene(program, lose=0.9) as scene:
        for _ in range(3):
            scene.download("/entity/1000/a")
        scene.agent.wait_until_ended("s")
        until = time.monotonic() + 120
        while scene.agent.must("GET", "/v1/status")["outbox"]["waiting"] and time.monotonic() < until:
            time.sleep(0.05)
        told = sum(count for _, _, count in scene.gateway.events)
        verdicts.equal("an event that is told again counts once", f"{scene.gateway.events}", told, 3)
        verdicts.check("an event that is told again counts once", scene.gateway.requests > 1, "it was told once only")
    with Scene(program) as scene:
        events = Events(scene, "s")
        scene.download("/entity/400000/a?rate=400000")
        events.until("idle")
        names = [name for name, _ in events.events]
        verdicts.equal("a follower is told", f"{names}", (names[0], names[-2:]), ("state", ["finished", "idle"]))
        progress = [data["bytes"] for name, data in events.events if name == "progress"]
        verdicts.check("progress grows", len(progress) >= 2 and progress == sorted(set(progress)), f"{progress}")
        verdicts.equal("who follows is not woken", "events", scene.gateway.events, [])
        events.close()
        until = time.monotonic() + 120
        while scene.agent.ask("GET", "/metrics")[1].find("wakegate_transfers_listeners 0") < 0:
            if time.monotonic() > until:
                raise RuntimeError("the follower is still there")
            time.sleep(0.02)
        follower = socket.socket(socket.AF_UNIX)
        follower.connect(scene.agent.socket_path)
        follower.sendall(b"GET /v1/sessions/s/events HTTP/1.1\r\nhost: a\r\n\r\n")
        while b"event: state" not in follower.recv(4096, socket.MSG_PEEK):
            time.sleep(0.02)
        scene.download("/entity/10/unread")
        while b"event: idle" not in follower.recv(65536, socket.MSG_PEEK):
            time.sleep(0.02)
        verdicts.equal("who has the end before it is not woken", "events", scene.gateway.events, [])
        follower.close()
        until = time.monotonic() + 120
        while not scene.gateway.events and time.monotonic() < until:
            time.sleep(0.02)
        told = [count for _, _, count in scene.gateway.events]
        verdicts.equal("who dies with the end unread is woken for it", "events", told, [1])
        for is_read in (False, True):
            scene.gateway.events.clear()
            follower = socket.socket(socket.AF_UNIX)
            follower.connect(scene.agent.socket_path)
            follower.sendall(b"GET /v1/sessions/s/events HTTP/1.1\r\nhost: a\r\n\r\n")
            while b"event: state" not in follower.recv(4096, socket.MSG_PEEK):
                time.sleep(0.02)
            transfer = scene.download("/entity/10/both")
            while b"event: idle" not in follower.recv(65536, socket.MSG_PEEK):
                time.sleep(0.02)
            if is_read:
                follower.recv(65536)
                commits = scene.commits()
                scene.wait(lambda before=commits: scene.commits() > before)
            scene.agent.kill()
            follower.close()
            scene.agent.start()
            scene.ended(transfer)
            if not is_read:
                scene.wait(lambda: scene.gateway.events)
            told = [count for _, _, count in scene.gateway.events]
            check = "a follower that dies with the agent is woken for an end that it has not read"
            verdicts.equal(check, f"read: {is_read}", told, [] if is_read else [1])
        scene.gateway.events.clear()
        scene.agent.must("PUT", "/v1/sessions/s", {"sendsLaunchEvents": False})
        scene.ended(scene.download("/entity/10/b"))
        verdicts.equal("who asks for no events is not woken", "events", scene.gateway.events, [])
        shown = scene.agent.transfers("s")
        verdicts.equal("the list is in the order of submission", f"{shown}", len(shown), 5)
        cancelled = scene.download("/entity/4000000/c?rate=400000")
        scene.until(cancelled, lambda now: now["bytes"] > 100_000)
        scene.agent.must("DELETE", f"/v1/sessions/s/transfers/{cancelled}?keep=1")
        verdicts.equal("a cancelled transfer is cancelled", "state", scene.shown(cancelled)["state"], "cancelled")
        scene.log()
        again = scene.download("/entity/4000000/c?rate=400000")
        scene.until(again, lambda now: now["bytes"] > 200_000)
        ranges = [line[2] for line in scene.log() if "/4000000/" in line[1]]
        verdicts.check("what was kept is gone on with", bool(ranges and ranges[0]), f"{ranges}")
        scene.agent.must("DELETE", "/v1/sessions/s")
        status, _ = scene.agent.ask("GET", "/v1/sessions/s")
        verdicts.equal("a session that is deleted is gone", "status", status, 404)
        verdicts.equal("its files are gone", "files", os.listdir(f"{scene.folder}/state/files"), [])


def conditions(program: str, verdicts: Verdicts) -> None:
    with Scene(program, "--metered", "yes") as scene:
        scene.agent.must("PUT", "/v1/sessions/s", {"allowsMetered": False})
        held = scene.download("/entity/1000/a")
        found = scene.until(held, lambda now: now["held"] == "metered")
        verdicts.equal("a metered network holds", f"{found}", found["state"], "waiting")
        scene.agent.must("PUT", "/v1/sessions/s", {"allowsMetered": True})
        verdicts.equal("a change of the session lets go", "state", scene.ended(held)["state"], "finished")
    machine = tempfile.mkdtemp(prefix="wakegate-machine-")
    supply = f"{machine}/sys/class/power_supply/BAT0"
    os.makedirs(supply)
    for name, value in (("type", "Battery"), ("status", "Charging"), ("capacity", "50")):
        with open(f"{supply}/{name}", "w", encoding="ascii") as file:
            file.write(value + "\n")
    with Scene(program, "--set", f"machine={machine}") as scene:
        scene.agent.must("PUT", "/v1/sessions/s", {"discretionary": True})
        transfer = scene.download("/entity/30000000/a?rate=600000")
        scene.until(transfer, lambda now: now["bytes"] > 100_000)
        with open(f"{supply}/status", "w", encoding="ascii") as file:
            file.write("Discharging\n")
        found = scene.until(transfer, lambda now: now["held"] == "power")
        verdicts.equal("a battery stops what is discretionary", f"{found}", found["attempts"], 0)
        verdicts.check("what had come stays", found["bytes"] > 100_000, f"{found}")
        verdicts.check("why is told", "external power" in found["why"], f"{found}")
    shutil.rmtree(machine)


def many(program: str, verdicts: Verdicts, count: int) -> None:
    with Scene(program, "--set", f"limits.transfers={count + 1}") as scene:
        later = int(time.time() * 1000) + 86_400_000
        body = json.dumps({"kind": "download", "url": scene.server.base + "/entity/1/a", "earliestBegin": later})

        def submit(number: int) -> None:
            connection = UnixConnection(scene.agent.socket_path)
            for _ in range(number):
                connection.request("POST", "/v1/sessions/s/transfers", body, {"content-type": "application/json"})
                if connection.getresponse().read().find(b"transfer") < 0:
                    raise RuntimeError("a transfer was refused")
            connection.close()

        threads = [threading.Thread(target=submit, args=(count // 8,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        waiting = scene.agent.must("GET", "/v1/sessions/s")["transfers"]["waiting"]
        verdicts.equal("many wait", "number", waiting, count // 8 * 8)
        scene.agent.kill()
        seconds = scene.agent.start()
        resident = scene.agent.resident_bytes()
        waiting = scene.agent.must("GET", "/v1/sessions/s")["transfers"]["waiting"]
        verdicts.equal("many are there again", "number", waiting, count // 8 * 8)
        verdicts.note("many are there again", f"{seconds:.2f} s to start, {resident / 1e6:.0f} MB")
        # A sanitizer takes a multiple of the memory of a program.
        factor = 3 if {"ASAN_OPTIONS", "TSAN_OPTIONS"} & os.environ.keys() else 1
        verdicts.check("they take little memory", resident < factor * (50e6 + count * 700), f"{resident} bytes")
        quick = scene.ended(scene.download("/entity/10/b"))
        verdicts.equal("one that may begin does not wait for them", f"{quick}", quick["state"], "finished")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--many", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    verdicts = Verdicts()
    for scene in (entities, servers, uploads, space, states, callers, followers, sessions, readers, conditions):
        scene(options.program, verdicts)
    many(options.program, verdicts, options.many)
    with tempfile.TemporaryDirectory(prefix="wakegate-transfers-") as folder:
        transfers.kills(options.program, options, folder, verdicts)
    verdicts.print("transfers")
    return 0 if verdicts.passed else 1


if __name__ == "__main__":
    sys.exit(main())
