"""Single scenes of the transfer agent, each with one fault, which the test suite runs."""

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from shared import processes, trial, waiting
from shared.transfer_agent import DEVICE, TOPIC, RawServer, Stage, UnixConnection, digest, digest_of
from shared.verdicts import Verdicts
from soak import transfers

NOBODY = 65_534
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
# The limits for a full disk: nothing more can be written until they are reset.
FULL = (1, resource.RLIM_INFINITY)


class Scene(Stage):
    """A server, a gateway and an agent with one session `s`, and the results."""

    def __init__(self, program: str, verdicts: Verdicts, *options: str, lose: float = 0.0):
        super().__init__(program, *options, lose=lose)
        self.verdicts = verdicts

    def __enter__(self) -> "Scene":
        super().__enter__()
        self.session(device=DEVICE, topic=TOPIC)
        return self

    def session(self, **settings: object) -> None:
        self.agent.must("PUT", "/v1/sessions/s", settings)

    def submit(self, kind: str, path: str, **more: object) -> str:
        url = path if path.startswith("http") else self.server.base + path
        return self.agent.must("POST", "/v1/sessions/s/transfers", {"kind": kind, "url": url, **more})["transfer"]

    def download(self, path: str, **more: object) -> str:
        return self.submit("download", path, **more)

    def until(self, transfer: str, holds) -> dict:
        """Waits until a condition holds for a transfer, and returns the transfer."""
        found: dict = {}

        def has_come() -> bool:
            found.update(self.agent.must("GET", f"/v1/sessions/s/transfers/{transfer}"))
            return holds(found)

        if not waiting.until(has_come):
            raise RuntimeError(f"it has not come to that: {found}")
        return found

    def ended(self, transfer: str) -> dict:
        return self.until(transfer, lambda found: found["state"] not in ("waiting", "running"))

    def compare(self, name: str, found: dict, content: str = "", **fields: object) -> dict:
        """Compares a transfer's fields, of which `reason` is that of its error, and the content's SHA-256 if given."""
        told = {**found, "reason": (found["error"] or {}).get("reason")}
        self.verdicts.equal(name, f"{found}", {field: told[field] for field in fields}, fields)
        if content:
            self.verdicts.equal(name, "the content", self.content(found["transfer"]), content)
        return found

    def ends(self, name: str, path: str, options: dict | None = None, content: str = "", **fields: object) -> dict:
        """Compares the outcome of a download."""
        return self.compare(name, self.ended(self.download(path, **(options or {}))), content, **fields)

    def comes(self, name: str, holds) -> None:
        """Checks that a condition holds within two minutes."""
        self.verdicts.check(name, waiting.until(holds), "it does not come about")

    def refused(self, name: str, expected: tuple[int, str], method: str, path: str, body: object = None) -> dict:
        """Compares the status and the reason of an answer."""
        status, told = self.agent.ask(method, path, body)
        self.verdicts.equal(name, f"{told}", (status, told["reason"]), expected)
        return told

    def limit(self, bytes_max: tuple[int, int]) -> None:
        """Limits the size of the agent's files."""
        resource.prlimit(self.agent.pid, resource.RLIMIT_FSIZE, bytes_max)

    def figure(self, name: str) -> int:
        """Returns a figure of the agent's metrics."""
        return int(self.agent.ask("GET", "/metrics")[1].split(f"\nwakegate_transfers_{name} ")[1].split("\n")[0])

    def is_healthy(self) -> bool:
        return self.agent.ask("GET", "/healthz")[0] == 200

    def content(self, transfer: str) -> str:
        place = f"{self.folder}/{transfer}"
        self.agent.must("POST", f"/v1/sessions/s/transfers/{transfer}/take", {"to": place})
        return digest_of(place)

    def woken(self) -> list[int]:
        """Returns the number of transfers of each event that the gateway received."""
        return [count for _, _, count in self.gateway.events]

    def follower(self, room: int | None = None) -> socket.socket:
        """Returns a connection that has requested the session's events and has read nothing."""
        follower = socket.socket(socket.AF_UNIX)
        if room:
            follower.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        follower.connect(self.agent.socket_path)
        follower.sendall(b"GET /v1/sessions/s/events HTTP/1.1\r\nhost: a\r\n\r\n")
        return follower


def has_unread(follower: socket.socket, event: str) -> None:
    """Waits until an unread event has arrived."""
    waiting.until(lambda: f"event: {event}".encode() in follower.recv(65536, socket.MSG_PEEK))


# Downloads: for each one, its name, its path and options, and the fields of the ended transfer.
ENDS = (
    ("a lying length fails", "/entity/5000/d?lie=7", {}, {"reason": "WrongLength"}),
    ("a wrong checksum fails", "/entity/5000/e", {"sha256": "0" * 64}, {"reason": "BadChecksum"}),
    ("more than bytesMax fails", "/entity/5000/f", {"bytesMax": 4999}, {"reason": "TooLarge"}),
    ("a 404 is final", "/entity/1/g?status=404", {}, {"status": 404, "attempts": 1}),
    ("redirects have an end", "/entity/1/j?loop=1", {}, {"reason": "TooManyRedirects"}),
    ("a redirect to a file is refused", "/entity/1/k?redirect=file:///etc/passwd", {}, {"reason": "ForbiddenProtocol"}),
)


def entities(program: str, verdicts: Verdicts) -> None:
    with Scene(program, verdicts) as scene:
        name, path = "a cut download resumes", "/entity/300000/a?cut=100000"
        scene.ends(name, path, content=digest(300_000, "a"), state="finished", attempts=3)
        ranges = [line[2] for line in scene.server.ask("/log") if "cut=100000" in line[1]]
        verdicts.equal(name, "the ranges", ranges, [None, "bytes=100000-", "bytes=200000-"])
        changed = digest(300_000, "bTrue")
        path = "/entity/300000/b?cut=200000&change=1"
        scene.ends("a changed entity begins anew", path, content=changed, state="finished")
        plain = scene.download("/entity/400000/c?noranges=1&rate=400000")
        scene.until(plain, lambda now: now["bytes"] > 50_000)
        scene.agent.kill()
        scene.agent.start()
        found = scene.ended(plain)
        scene.compare("a server without ranges begins anew", found, digest(400_000, "c"), state="finished")
        scene.compare("an agent's end does not count as an attempt", found, attempts=1)
        for name, path, options, fields in ENDS:
            scene.ends(name, path, options, **fields)
        served = scene.server.base.replace("127.0.0.1", "localhost")
        headers = {"authorization": "Bearer secret", "x-other": "1"}
        scene.ended(scene.download(f"/entity/1/h?redirect={served}/entity/7/i", headers=headers))
        told = {line[1].split("?")[0]: line[3] for line in scene.server.ask("/log")}
        found = (told.get("/entity/1/h"), told.get("/entity/7/i", ""))
        verdicts.equal("authorization goes to no other host", "here and there", found, ("Bearer secret", None))
        scene.session(requestTimeout=1)
        found = scene.until(scene.download("/entity/100000/l?stall=30"), lambda now: now["attempts"] >= 1)
        scene.compare("a silent server is left", found, reason="ConnectionFailed")
        verdicts.equal("SIGTERM ends it in order", "the status", scene.agent.end(signal.SIGTERM), 0)
        kept = b""
        for name in ("transfers.sqlite", "transfers.sqlite-wal"):
            if os.path.exists(f"{scene.agent.state}/{name}"):
                with open(f"{scene.agent.state}/{name}", "rb") as file:
                    kept += file.read()
        there = b"/entity/300000/a" in kept and b"Bearer secret" not in kept
        verdicts.check("secrets go with their transfer", there, "the store has them")


def answer(status: str, body: str = "", *fields: str) -> str:
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", body])


SECRETS = ("authorization", "cookie", "private-token", "x-amz-security-token", "x-api-key")


def servers(program: str, verdicts: Verdicts) -> None:
    """Servers that violate their protocol."""
    with Scene(program, verdicts) as scene, RawServer() as raw, RawServer() as other:

        def mixed(fields: dict[str, str]) -> list[str]:
            # Supports ranges, but not If-Range. After the first answer, the entity changes and keeps its length.
            if "range" in fields:
                first = int(fields["range"].split("=")[1].split("-")[0])
                part = f"Content-Range: bytes {first}-49999/50000"
                return [answer("206 Partial Content", "B" * (50_000 - first), part, 'ETag: "two"')]
            whole = answer("200 OK", "B" * 50_000, 'ETag: "two"')
            return [whole] if len(raw.requests) > 1 else [whole.replace("two", "one").replace("B", "A")[:-30_000]]

        def endless(_: dict[str, str]):
            yield "HTTP/1.1 200 OK\r\n\r\n"
            while True:
                yield "x" * 65_536

        other.answers["/there"] = answer("200 OK", "there")
        raw.answers = {
            "/mixed": mixed,
            "/away": answer("302 Found", "", f"Location: {other.base}/there"),
            "/spaced": answer("302 Found", "", f"Location: {raw.base}/a film"),
            "/a%20film": answer("200 OK", "film"),
            "/busy": answer("503 Busy", "x" * 200_000, "Retry-After: 3600"),
            "/odd": "HTTP/1.1 200 OK\r\nContent-Length: 0x10\r\n\r\n0123456789abcdef",
            "/endless": endless,
        }
        whole = hashlib.sha256(b"B" * 50_000).hexdigest()
        scene.ends("parts of two entities make no file", raw.base + "/mixed", content=whole)
        fields = dict.fromkeys(SECRETS, "s3cret") | {"accept": "text/plain"}
        found = scene.ended(scene.download(raw.base + "/away", headers=fields))
        told = [name for name in fields if name in other.requests[-1]]
        verdicts.equal("no secret goes to another host", f"{found}", told, ["accept"])
        scene.ends("a redirect with a space is followed", raw.base + "/spaced", state="finished")
        found = scene.until(scene.download(raw.base + "/busy"), lambda now: now["attempts"] == 1)
        wait = found["nextAttemptAt"] / 1000 - time.time()
        verdicts.check("a busy server is left alone, however long its answer", wait > 3000, f"{wait} s")
        scene.ends("a length that is none fails", raw.base + "/odd", reason="WrongLength")
        path = f"{scene.folder}/up"
        with open(path, "wb") as file:
            file.write(b"u" * 100_000)
        found = scene.ended(scene.submit("upload", raw.base + "/endless", file=path))
        scene.compare("an upload does not wait for an answer's end", found, state="finished")


def states(program: str, verdicts: Verdicts) -> None:
    """The limits of a state folder, and the errors that callers get."""
    with Scene(program, verdicts) as scene:
        place = f"/v1/sessions/s/transfers/{scene.ended(scene.download('/entity/1000/a'))['transfer']}"
        for name, path in (
            ("nothing is taken into the state folder", f"{scene.agent.state}/lock"),
            ("no file takes the place of a socket", scene.agent.socket_path),
        ):
            scene.refused(name, (400, "BadPath"), "POST", f"{place}/take", {"to": path, "replace": True})
        events = Events(scene)
        cancelled = scene.download("/entity/4000000/c?rate=400000")
        scene.agent.must("DELETE", f"/v1/sessions/s/transfers/{cancelled}")
        events.until("idle")
        events.close()
        connection = UnixConnection(scene.agent.socket_path)
        connection.request("PATCH", "/v1/sessions/s")
        allowed = sorted((connection.getresponse().getheader("allow") or "").split(", "))
        verdicts.equal("a 405 names what is allowed", "the methods", allowed, ["DELETE", "GET", "PUT"])
        connection.close()
        # Every request gets an answer, with the data or with the reason for its absence.
        scene.limit(FULL)
        scene.agent.ask("PUT", "/v1/sessions/t", {})
        for path in ("/v1/sessions", "/v1/sessions/s", "/v1/sessions/s/transfers", place, "/v1/sessions/s/events"):
            verdicts.equal("a full disk delays no answer", path, scene.agent.ask("GET", path)[0], 507)
        fault = scene.agent.must("GET", "/v1/status")["storeFault"]
        verdicts.check("the status says that the disk is full", bool(fault), f"{fault}")
        scene.limit(UNLIMITED)
        waiting.until(scene.is_healthy)
        for name in os.listdir(f"{scene.agent.state}/files"):
            os.unlink(f"{scene.agent.state}/files/{name}")
        gone = {"to": f"{scene.folder}/gone"}
        scene.refused("a missing file is reported", (410, "FileGone"), "POST", f"{place}/take", gone)
        scene.ended(scene.download("/entity/1000/b"))
        scene.agent.end(signal.SIGTERM)
        for name in os.listdir(scene.agent.state):
            if name.startswith("transfers.sqlite"):
                os.unlink(f"{scene.agent.state}/{name}")
        name = "files are not lost with their database"
        try:
            scene.agent.start()
            verdicts.check(name, False, "the agent started")
        except processes.StartFailed as refused:
            verdicts.check(name, "put the one back" in str(refused), f"{refused}")
        verdicts.equal(name, "files", len(os.listdir(f"{scene.agent.state}/files")), 1)


def readers(program: str, verdicts: Verdicts) -> None:
    """Lists that exceed one answer, and followers that do not read."""
    with Scene(program, verdicts) as scene:
        idle = scene.follower(room=4096)
        missing = scene.server.base + "/entity/1/a?status=404&" + "q" * 8000
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(scene.download, [missing] * 200))
        scene.agent.wait_until_ended("s")
        # The next write finds that the follower has read nothing.
        scene.comes(
            "who does not read is left",
            lambda: scene.figure("listeners") == 0 or scene.ended(scene.download("/entity/1/b")) is None,
        )
        scene.comes("who did not read is woken", lambda: scene.gateway.events)
        idle.close()
        with ThreadPoolExecutor(8) as pool:
            # A control character takes six bytes in JSON, so this is more than the 8 MiB of a page.
            list(pool.map(lambda note: scene.download(missing, note=note), ["\x01" * 1000] * 1600))
        seen: list[str] = []
        pages, after = 0, ""
        while after is not None:
            page = scene.agent.must("GET", f"/v1/sessions/s/transfers?limit=10000{after}")
            pages += 1
            seen += [transfer["transfer"] for transfer in page["transfers"]]
            after = page["next"] and f"&after={page['next']}"
        counts = scene.agent.must("GET", "/v1/sessions/s")["transfers"]
        verdicts.equal("a long list comes in pages", f"{pages}", len(set(seen)), sum(counts.values()))
        verdicts.check("a long list comes in pages", pages > 1 and len(seen) == len(set(seen)), f"{pages} pages")


def uploads(program: str, verdicts: Verdicts) -> None:
    with Scene(program, verdicts) as scene:
        path = f"{scene.folder}/up"
        with open(path, "wb") as file:
            file.write(random.Random(5).randbytes(3_000_000))
        for target, name in (("/upload/a", "a"), ("/upload/b?redirect=/upload/c", "c")):
            found = scene.ended(scene.submit("upload", target, file=path))
            scene.compare("an upload arrives", found, state="finished", bytes=3_000_000)
            told = (scene.server.ask(f"/upload/{name}") or {}).get("sha256")
            verdicts.equal("an upload arrives", name, told, digest_of(path))
        found = scene.ended(scene.submit("upload", "/upload/d", file=path + ".missing"))
        scene.compare("a file that is not there", found, reason="FileUnreadable")


def space(program: str, verdicts: Verdicts) -> None:
    with Scene(program, verdicts, "--set", "limits.stateBytes=1000000") as scene:
        found = scene.ends("what does not fit fails at once", "/entity/1200000/a", reason="NoSpace")
        verdicts.check("the missing bytes are reported", "200000" in found["error"]["message"], f"{found['error']}")
        scene.ends("what fits is taken", "/entity/900000/b", state="finished")
    with Scene(program, verdicts) as scene:
        # A write beyond the limit fails as on a full disk.
        scene.limit((2_000_000, 2_000_000))
        scene.ends("a full disk during a download is reported", "/entity/3000000/c", reason="NoSpace")
        scene.ends("a download that fits continues", "/entity/1000000/d", state="finished")
    with Scene(program, verdicts) as scene:
        scene.limit(FULL)
        # The first request detects the full disk, and the second is refused immediately. Neither waits for space or is
        # done later.
        body = {"kind": "download", "url": scene.server.base + "/entity/10/d"}
        for _ in range(2):
            name = "what cannot be stored is refused"
            scene.refused(name, (507, "NoSpace"), "POST", "/v1/sessions/s/transfers", body)
        verdicts.equal("a full disk is unhealthy", "the status", scene.agent.ask("GET", "/healthz")[0], 503)
        scene.limit(UNLIMITED)
        waiting.until(scene.is_healthy)
        verdicts.equal("what was refused is not done later", "transfers", scene.agent.transfers("s"), [])
        scene.ends("with space everything works again", "/entity/10/d", state="finished")
    with Scene(program, verdicts) as scene:
        shutil.rmtree(f"{scene.agent.state}/files")
        content = digest(100_000, "e")
        scene.ends("a folder that has vanished is made again", "/entity/100000/e", None, content, state="finished")


def callers(program: str, verdicts: Verdicts) -> None:
    with Scene(program, verdicts) as scene:
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
        # A separate thread writes the lines.
        scene.comes("another user's caller is logged", lambda: f"callerRefused user={NOBODY}" in scene.agent.errors())


def followers(program: str, verdicts: Verdicts) -> None:
    """The maximum number of followers and connections of one user, and one more."""
    with Scene(program, verdicts, "--set", "limits.followers=3") as scene:
        events = [Events(scene) for _ in range(3)]
        name = "there are so many followers of a user"
        told = scene.refused(name, (429, "TooManyStreams"), "GET", "/v1/sessions/s/events")
        verdicts.check("the limit is named", "limits.followers" in told["message"], f"{told}")
        scene.comes("the limit is logged", lambda: "limitMet limit=limits.followers" in scene.agent.errors())
        verdicts.equal("status requests still succeed", "the status", scene.agent.ask("GET", "/v1/status")[0], 200)
        events.pop().close()
        scene.comes("who leaves makes room", lambda: scene.figure("listeners") == 2)
        events.append(Events(scene))
        # Connections that send one request and stay open.
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
        scene.comes("a connection that is closed makes room", lambda: scene.agent.ask("GET", "/v1/status")[0] == 200)
        for each in (*held, *events):
            each.close()


class Events:
    """Follows the session's events."""

    def __init__(self, scene: Scene):
        self.connection = UnixConnection(scene.agent.socket_path)
        self.connection.request("GET", "/v1/sessions/s/events")
        self.answer = self.connection.getresponse()
        self.events: list[tuple[str, dict]] = []
        self.read()

    def read(self) -> str:
        name = ""
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                self.events.append((name, json.loads(line[6:])))
                self.answer.readline()
                return name

    def until(self, name: str) -> None:
        while self.read() != name:
            pass

    def close(self) -> None:
        self.answer.close()
        self.connection.close()


def sessions(program: str, verdicts: Verdicts) -> None:
    with Scene(program, verdicts, lose=0.9) as scene:
        for _ in range(3):
            scene.download("/entity/1000/a")
        scene.agent.wait_until_ended("s")
        waiting.until(lambda: scene.agent.must("GET", "/v1/status")["outbox"]["waiting"] == 0)
        name = "a repeated event counts once"
        verdicts.equal(name, f"{scene.gateway.events}", sum(scene.woken()), 3)
        verdicts.check(name, len(scene.gateway.requests) > 1, "it was sent once only")
    with Scene(program, verdicts) as scene:
        events = Events(scene)
        scene.download("/entity/400000/a?rate=400000")
        events.until("idle")
        names = [name for name, _ in events.events]
        verdicts.equal("a follower gets events", f"{names}", (names[0], names[-2:]), ("state", ["finished", "idle"]))
        progress = [data["bytes"] for name, data in events.events if name == "progress"]
        verdicts.check("progress grows", len(progress) >= 2 and progress == sorted(set(progress)), f"{progress}")
        verdicts.equal("who follows is not woken", "events", scene.gateway.events, [])
        events.close()
        if not waiting.until(lambda: scene.figure("listeners") == 0):
            raise RuntimeError("the follower is still there")
        ends_unread(scene)
        scene.gateway.events.clear()
        scene.session(sendsLaunchEvents=False)
        scene.ended(scene.download("/entity/10/b"))
        verdicts.equal("who asks for no events is not woken", "events", scene.gateway.events, [])
        shown = scene.agent.transfers("s")
        verdicts.equal("the list is in the order of submission", f"{shown}", len(shown), 5)
        cancelled = scene.download("/entity/4000000/c?rate=400000")
        scene.until(cancelled, lambda now: now["bytes"] > 100_000)
        scene.agent.must("DELETE", f"/v1/sessions/s/transfers/{cancelled}?keep=1")
        scene.compare("a cancelled transfer is cancelled", scene.ended(cancelled), state="cancelled")
        scene.server.ask("/log")
        again = scene.download("/entity/4000000/c?rate=400000")
        scene.until(again, lambda now: now["bytes"] > 200_000)
        ranges = [line[2] for line in scene.server.ask("/log") if "/4000000/" in line[1]]
        verdicts.check("a kept part is resumed", bool(ranges and ranges[0]), f"{ranges}")
        scene.agent.must("DELETE", "/v1/sessions/s")
        status, _ = scene.agent.ask("GET", "/v1/sessions/s")
        verdicts.equal("a session that is deleted is gone", "status", status, 404)
        verdicts.equal("its files are gone", "files", os.listdir(f"{scene.agent.state}/files"), [])


def ends_unread(scene: Scene) -> None:
    """Followers that leave before or after reading the end of a transfer, with the agent or without it."""
    follower = scene.follower()
    has_unread(follower, "state")
    scene.download("/entity/10/unread")
    has_unread(follower, "idle")
    scene.verdicts.equal("who has the end before it is not woken", "events", scene.gateway.events, [])
    follower.close()
    waiting.until(lambda: scene.gateway.events)
    scene.verdicts.equal("who dies with the end unread is woken for it", "events", scene.woken(), [1])
    for is_read in (False, True):
        scene.gateway.events.clear()
        follower = scene.follower()
        has_unread(follower, "state")
        transfer = scene.download("/entity/10/both")
        has_unread(follower, "idle")
        if is_read:
            follower.recv(65536)
            commits = scene.figure("commits_total")
            waiting.until(lambda before=commits: scene.figure("commits_total") > before)
        scene.agent.kill()
        follower.close()
        scene.agent.start()
        scene.ended(transfer)
        if not is_read:
            waiting.until(lambda: scene.gateway.events)
        check = "a follower that dies with the agent is woken for an end that it has not read"
        scene.verdicts.equal(check, f"read: {is_read}", scene.woken(), [] if is_read else [1])


def conditions(program: str, verdicts: Verdicts) -> None:
    with Scene(program, verdicts, "--metered", "yes") as scene:
        scene.session(allowsMetered=False)
        held = scene.download("/entity/1000/a")
        found = scene.until(held, lambda now: now["held"] == "metered")
        scene.compare("a metered network holds", found, state="waiting")
        scene.session(allowsMetered=True)
        scene.compare("a change of the session lets go", scene.ended(held), state="finished")
    with tempfile.TemporaryDirectory(prefix="wakegate-machine-") as machine:
        supply = f"{machine}/sys/class/power_supply/BAT0"
        os.makedirs(supply)

        def supplies(**values: str) -> None:
            for name, value in values.items():
                with open(f"{supply}/{name}", "w", encoding="ascii") as file:
                    file.write(value + "\n")

        supplies(type="Battery", status="Charging", capacity="50")
        with Scene(program, verdicts, "--set", f"machine={machine}") as scene:
            scene.session(discretionary=True)
            transfer = scene.download("/entity/30000000/a?rate=600000")
            scene.until(transfer, lambda now: now["bytes"] > 100_000)
            supplies(status="Discharging")
            found = scene.until(transfer, lambda now: now["held"] == "power")
            scene.compare("a battery stops what is discretionary", found, attempts=0)
            verdicts.check("what had come stays", found["bytes"] > 100_000, f"{found}")
            verdicts.check("why is told", "external power" in found["why"], f"{found}")


def many(program: str, verdicts: Verdicts, count: int) -> None:
    with Scene(program, verdicts, "--set", f"limits.transfers={count + 1}") as scene:
        later = int(time.time() * 1000) + 86_400_000
        body = json.dumps({"kind": "download", "url": scene.server.base + "/entity/1/a", "earliestBegin": later})

        def submit(number: int) -> None:
            connection = UnixConnection(scene.agent.socket_path)
            for _ in range(number):
                connection.request("POST", "/v1/sessions/s/transfers", body, {"content-type": "application/json"})
                if connection.getresponse().read().find(b"transfer") < 0:
                    raise RuntimeError("a transfer was refused")
            connection.close()

        def compare(name: str) -> None:
            waits = scene.agent.must("GET", "/v1/sessions/s")["transfers"]["waiting"]
            verdicts.equal(name, "number", waits, count // 8 * 8)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(submit, [count // 8] * 8))
        compare("many wait")
        scene.agent.kill()
        seconds = scene.agent.start()
        resident = processes.resident_bytes(scene.agent.pid)
        compare("many are there again")
        verdicts.note("many are there again", f"{seconds:.2f} s to start, {resident / 1e6:.0f} MB")
        # A sanitizer multiplies the memory of a program.
        factor = 3 if {"ASAN_OPTIONS", "TSAN_OPTIONS"} & os.environ.keys() else 1
        verdicts.check("they take little memory", resident < factor * (50e6 + count * 700), f"{resident} bytes")
        scene.ends("one that may begin does not wait for them", "/entity/10/b", state="finished")


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    for scene in (entities, servers, uploads, space, states, callers, followers, sessions, readers, conditions):
        scene(program, verdicts)
    many(program, verdicts, options.many)
    transfers.kills(program, options, verdicts)
    return verdicts


if __name__ == "__main__":
    trial.run("transfers", soak, kills=12, many=8000)
