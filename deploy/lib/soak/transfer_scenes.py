"""Single scenes of the transfer agent, each with one fault, which the test suite runs."""

import argparse
import os
import random
import resource
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shared import processes, trial, waiting
from shared.transfer_agent import DEVICE, TOPIC, Stage, digest_of
from shared.verdicts import Verdicts
from soak import transfers

NOBODY = 65_534
UNLIMITED = resource.RLIM_INFINITY


class Scene(Stage):
    """A server, a gateway and an agent with one session `s`, and the results."""

    def __init__(self, program: str, verdicts: Verdicts, *options: str):
        super().__init__(program, *options)
        self.verdicts = verdicts

    def __enter__(self) -> "Scene":
        super().__enter__()
        self.session(device=DEVICE, topic=TOPIC)
        return self

    def session(self, **settings: object) -> None:
        self.agent.must("PUT", "/v1/sessions/s", settings)

    def submit(self, kind: str, path: str, **more: object) -> str:
        body = {"kind": kind, "url": self.server.base + path, **more}
        return self.agent.must("POST", "/v1/sessions/s/transfers", body)["transfer"]

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

    def compare(self, name: str, found: dict, **fields: object) -> dict:
        """Compares a transfer's fields, of which `reason` is that of its error."""
        told = {**found, "reason": (found["error"] or {}).get("reason")}
        self.verdicts.equal(name, f"{found}", {field: told[field] for field in fields}, fields)
        return found

    def comes(self, name: str, holds) -> None:
        """Checks that a condition holds within two minutes."""
        self.verdicts.check(name, waiting.until(holds), "it does not come about")

    def refused(self, name: str, expected: tuple[int, str], method: str, path: str, body: object = None) -> dict:
        """Compares the status and the reason of an answer."""
        status, told = self.agent.ask(method, path, body)
        self.verdicts.equal(name, f"{told}", (status, told["reason"]), expected)
        return told

    def limit(self, bytes_max: int) -> None:
        """Limits the size of the agent's files. A write beyond the limit fails as on a full disk."""
        resource.prlimit(self.agent.pid, resource.RLIMIT_FSIZE, (bytes_max, UNLIMITED))

    def figure(self, name: str) -> int:
        """Returns a figure of the agent's metrics."""
        return int(self.agent.ask("GET", "/metrics")[1].split(f"\nwakegate_transfers_{name} ")[1].split("\n")[0])

    def is_healthy(self) -> bool:
        return self.agent.ask("GET", "/healthz")[0] == 200

    def follower(self, room: int | None = None) -> socket.socket:
        """Returns a connection that has requested the session's events and has read nothing."""
        follower = socket.socket(socket.AF_UNIX)
        if room:
            follower.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        follower.connect(self.agent.socket_path)
        follower.sendall(b"GET /v1/sessions/s/events HTTP/1.1\r\nhost: a\r\n\r\n")
        return follower


def has_unread(follower: socket.socket, event: str) -> socket.socket:
    """Waits until an unread event has arrived."""
    waiting.until(lambda: f"event: {event}".encode() in follower.recv(65536, socket.MSG_PEEK))
    return follower


def servers(program: str, verdicts: Verdicts) -> None:
    """Servers that violate their protocol, or do not answer."""
    with Scene(program, verdicts) as scene:
        for name, path, options, reason in (
            ("a lying length fails", "/entity/5000/a?length=5007", {}, "WrongLength"),
            ("a length that is none fails", "/entity/16/a?length=0x10", {}, "WrongLength"),
            ("more than bytesMax fails", "/entity/5000/b", {"bytesMax": 4999}, "TooLarge"),
        ):
            scene.compare(name, scene.ended(scene.download(path, **options)), reason=reason)
        busy = scene.download("/entity/1/b?status=503&after=3600&times=100000")
        wait = scene.until(busy, lambda now: now["attempts"] == 1)["nextAttemptAt"] / 1000 - time.time()
        verdicts.check("a busy server is left alone, however long its answer", wait > 3000, f"{wait} s")
        path = f"{scene.folder}/up"
        with open(path, "wb") as file:
            file.write(random.Random(5).randbytes(3_000_000))
        found = scene.ended(scene.submit("upload", "/upload/a?endless=1", file=path))
        scene.compare("an upload does not wait for an answer's end", found, state="finished")
        found = scene.ended(scene.submit("upload", "/upload/b?redirect=/upload/c", file=path))
        scene.compare("a redirected upload arrives", found, state="finished", bytes=3_000_000)
        told = (scene.server.ask("/upload/c") or {}).get("sha256")
        verdicts.equal("a redirected upload arrives", "the content", told, digest_of(path))
        scene.session(requestTimeout=1)
        found = scene.until(scene.download("/entity/100000/c?stall=30"), lambda now: now["attempts"] >= 1)
        scene.compare("a silent server is left", found, reason="ConnectionFailed")


def disk(program: str, verdicts: Verdicts) -> None:
    """Files that do not fit, and a disk that is full for a while."""
    with Scene(program, verdicts, "--set", "limits.stateBytes=4000000") as scene:
        place = f"/v1/sessions/s/transfers/{scene.ended(scene.download('/entity/1000/a'))['transfer']}"
        found = scene.ended(scene.download("/entity/4200000/b"))
        scene.compare("what does not fit fails at once", found, reason="NoSpace")
        verdicts.check("the missing bytes are reported", "201000" in found["error"]["message"], f"{found['error']}")
        scene.limit(2_000_000)
        found = scene.ended(scene.download("/entity/3000000/c"))
        scene.compare("a full disk during a download is reported", found, reason="NoSpace")
        scene.limit(1)
        # The first request detects the full disk, and the others are refused immediately. None waits for space or is
        # done later.
        body = {"kind": "download", "url": scene.server.base + "/entity/10/d"}
        for _ in range(2):
            name = "what cannot be stored is refused"
            scene.refused(name, (507, "NoSpace"), "POST", "/v1/sessions/s/transfers", body)
        for path in ("/v1/sessions", "/v1/sessions/s", "/v1/sessions/s/transfers", place, "/v1/sessions/s/events"):
            verdicts.equal("a full disk delays no answer", path, scene.agent.ask("GET", path)[0], 507)
        fault = scene.agent.must("GET", "/v1/status")["storeFault"]
        verdicts.check("the status says that the disk is full", bool(fault), f"{fault}")
        verdicts.check("a full disk is unhealthy", not scene.is_healthy(), "it is healthy")
        scene.limit(UNLIMITED)
        waiting.until(scene.is_healthy)
        verdicts.equal("what was refused is not done later", "transfers", len(scene.agent.transfers("s")), 3)
        found = scene.ended(scene.download("/entity/10/d"))
        scene.compare("with space everything works again", found, state="finished")


def requests(program: str, verdicts: Verdicts) -> None:
    """Requests that the agent refuses, and a download that is cancelled and continued."""
    with Scene(program, verdicts) as scene:
        take = f"/v1/sessions/s/transfers/{scene.ended(scene.download('/entity/1000/a'))['transfer']}/take"
        own = {"to": f"{scene.agent.state}/lock", "replace": True}
        scene.refused("nothing is taken into the state folder", (400, "BadPath"), "POST", take, own)
        for path in Path(scene.agent.state, "files").iterdir():
            path.unlink()
        gone = {"to": f"{scene.folder}/gone"}
        scene.refused("a missing file is reported", (410, "FileGone"), "POST", take, gone)
        found = scene.ended(scene.submit("upload", "/upload/a", file=f"{scene.folder}/missing"))
        scene.compare("a file that is not there", found, reason="FileUnreadable")
        allowed = sorted(scene.agent.http.patch("/v1/sessions/s").headers.get("allow", "").split(", "))
        verdicts.equal("a 405 names what is allowed", "the methods", allowed, ["DELETE", "GET", "PUT"])
        url = "/entity/4000000/c?rate=400000"
        cancelled = scene.download(url)
        scene.until(cancelled, lambda now: now["bytes"] > 100_000)
        scene.agent.must("DELETE", f"/v1/sessions/s/transfers/{cancelled}?keep=1")
        scene.compare("a cancelled transfer is cancelled", scene.ended(cancelled), state="cancelled")
        scene.until(scene.download(url), lambda now: now["bytes"] > 200_000)
        ranges = [line[2] for line in scene.server.ask("/log") if "/4000000/" in line[1]]
        verdicts.check("a kept part is resumed", bool(ranges[1]), f"{ranges}")


def readers(program: str, verdicts: Verdicts) -> None:
    """Lists that exceed one answer, and followers that do not read."""
    with Scene(program, verdicts) as scene:
        idle = scene.follower(room=4096)
        missing = "/entity/1/a?status=404&" + "q" * 8000
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
        command = ["curl", "--silent", "--include", "--unix-socket", scene.agent.socket_path, "http://a/v1/status"]
        asked = subprocess.run(command, capture_output=True, text=True, user=NOBODY, timeout=60, cwd="/")
        refused = asked.stdout.startswith("HTTP/1.1 403 ")
        verdicts.check("another user's caller is refused", refused, f"{asked.stdout} {asked.stderr}")
        # A separate thread writes the lines.
        scene.comes("another user's caller is logged", lambda: f"callerRefused user={NOBODY}" in scene.agent.errors())


def followers(program: str, verdicts: Verdicts) -> None:
    """The maximum number of followers and connections of one user, and one more."""
    with Scene(program, verdicts, "--set", "limits.followers=3") as scene:
        followers = [has_unread(scene.follower(), "state") for _ in range(3)]
        scene.refused("followers are limited", (429, "TooManyStreams"), "GET", "/v1/sessions/s/events")
        scene.comes("the limit is logged", lambda: "limitMet limit=limits.followers" in scene.agent.errors())
        # Connections that send one request and stay open, because their answers are not read.
        asked, held = scene.agent.http.build_request("GET", "/v1/status"), []
        while not held or held[-1].status_code == 200 and len(held) < 2000:
            held.append(scene.agent.http.send(asked, stream=True))
        name = "there are so many connections of a user"
        verdicts.equal(name, f"{held[-1].read()}", held[-1].status_code, 429)
        for answer in held[:2]:
            answer.close()
        scene.comes("a connection that is closed makes room", lambda: scene.agent.ask("GET", "/v1/status")[0] == 200)
        for each in (*held, *followers):
            each.close()


def unread(program: str, verdicts: Verdicts) -> None:
    """Followers that leave before or after reading the end of a transfer, with the agent or without it."""
    with Scene(program, verdicts) as scene:
        for is_read, is_killed in ((True, True), (False, True), (False, False)):
            scene.gateway.events.clear()
            follower = has_unread(scene.follower(), "state")
            transfer = scene.download("/entity/10/a")
            has_unread(follower, "idle")
            verdicts.equal("who has the end before it is not woken", "events", scene.gateway.events, [])
            if is_read:
                follower.recv(65536)
                commits = scene.figure("commits_total")
                waiting.until(lambda before=commits: scene.figure("commits_total") > before)
            if is_killed:
                scene.agent.kill()
            follower.close()
            if is_killed:
                scene.agent.start()
                scene.ended(transfer)
            if not is_read:
                waiting.until(lambda: scene.gateway.events)
            woken = [count for _, _, count in scene.gateway.events]
            what = f"read: {is_read}, killed: {is_killed}"
            verdicts.equal("who leaves is woken for an end that it has not read", what, woken, [] if is_read else [1])


def conditions(program: str, verdicts: Verdicts) -> None:
    with tempfile.TemporaryDirectory(prefix="wakegate-machine-") as machine:
        supply = Path(machine, "sys/class/power_supply/BAT0")
        supply.mkdir(parents=True)
        for name, value in {"type": "Battery", "status": "Discharging", "capacity": "50"}.items():
            (supply / name).write_text(value + "\n")
        with Scene(program, verdicts, "--metered", "yes", "--set", f"machine={machine}") as scene:
            scene.session(discretionary=True)
            held = scene.download("/entity/1000/a")
            found = scene.until(held, lambda now: now["held"] == "power")
            verdicts.check("a battery holds what is discretionary", "external power" in found["why"], f"{found}")
            scene.session(discretionary=False, allowsMetered=False)
            found = scene.until(held, lambda now: now["held"] == "metered")
            scene.compare("a metered network holds", found, state="waiting")
            scene.session(allowsMetered=True)
            scene.compare("a change of the session lets go", scene.ended(held), state="finished")


def many(program: str, verdicts: Verdicts, count: int) -> None:
    with Scene(program, verdicts, "--set", f"limits.transfers={count + 1}") as scene:
        later = int(time.time() * 1000) + 86_400_000

        def compare(name: str) -> None:
            waits = scene.agent.must("GET", "/v1/sessions/s")["transfers"]["waiting"]
            verdicts.equal(name, "number", waits, count)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: scene.download("/entity/1/a", earliestBegin=later), range(count)))
        compare("many wait")
        scene.agent.kill()
        seconds = scene.agent.start()
        resident = processes.resident_bytes(scene.agent.pid)
        compare("many are there again")
        verdicts.note("many are there again", f"{seconds:.2f} s to start, {resident / 1e6:.0f} MB")
        # A sanitizer multiplies the memory of a program.
        factor = 3 if {"ASAN_OPTIONS", "TSAN_OPTIONS"} & os.environ.keys() else 1
        verdicts.check("they take little memory", resident < factor * (50e6 + count * 700), f"{resident} bytes")
        found = scene.ended(scene.download("/entity/10/b"))
        scene.compare("one that may begin does not wait for them", found, state="finished")


def soak(program: str, options: argparse.Namespace) -> Verdicts:
    verdicts = Verdicts()
    for scene in (servers, disk, requests, callers, followers, unread, readers, conditions):
        scene(program, verdicts)
    many(program, verdicts, options.many)
    transfers.kills(program, options, verdicts)
    return verdicts


if __name__ == "__main__":
    trial.run("transfers", soak, kills=12, many=8000)
