"""The pytest fixture `wakegate`: a gateway of its own for each test.

    def test_news(wakegate):
        backend.send_news(apns_url=wakegate.url, ca=wakegate.ca)
        assert wakegate.wait_for_wake("com.example.news").payload["edition"] == 7

`@pytest.mark.wakegate(launch_interval=900, faults=[...], settings={"policy.maxAttempts": 1})` sets it up otherwise.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Sequence

import httpx
import pytest

from ._gateway import EventReader, integer
from .wakes import Push

#: The default device for pushes.
DEVICE = "0badcafe" * 8
Settings = Mapping[str, Any]
Rules = Sequence[Mapping[str, Any]]


class PushAnswer(NamedTuple):
    """The gateway's answer to a push."""

    status: int
    apns_id: str
    #: The reason of a refusal, such as BadDeviceToken.
    reason: Optional[str]
    #: launched, scheduled, coalesced, discarded or no-wake.
    disposition: Optional[str]
    #: What `wakegate dev` finds wrong with an accepted push, such as background-priority: see the article "Reasons".
    warning: Optional[str]


class _Until(Dict[str, float]):
    """The timeouts of a request whose answer may be read until a moment, whatever arrives before it."""

    def __init__(self, end: float) -> None:
        super().__init__(connect=10, write=10, pool=10)
        self._end = end

    def get(self, name: str, default: Any = None) -> Any:
        # httpcore asks before each read, so a comment or a ping does not prolong the wait. A socket takes no 0.
        return max(0.001, self._end - time.monotonic()) if name == "read" else super().get(name, default)


class WakeGate:
    """A `wakegate dev` that runs on free ports with its state in a folder."""

    def __init__(
        self, program: str, folder: Path, *, launch_interval: float = 0.001, faults: Rules = (), settings: Settings = {}
    ) -> None:
        self.log_file = folder / "wakegate.log"
        values = {"store": "memory", "policy.launchInterval": launch_interval, **settings}
        if launch_interval < 1:
            values.setdefault("policy.dailyLaunches", 1_000_000)
        command = [program, "dev", "--state", str(folder / ".wakegate"), "--edge", "127.0.0.1:0"]
        command += ["--admin", "127.0.0.1:0", "--plain", "127.0.0.1:0"]
        for key, value in values.items():
            command += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log)
        try:
            self._connect(folder)
            if faults:
                self.faults(faults)
        except BaseException as error:
            self._process.kill()
            self._process.communicate()
            if isinstance(error, AssertionError):
                raise pytest.fail.Exception(str(error), pytrace=False) from None
            raise

    def _connect(self, folder: Path) -> None:
        output = self._process.stdout
        line = output.readline() if output is not None and select.select([output], [], [], 30)[0] else b""
        if not line:
            raise AssertionError(f"wakegate dev did not start:\n{self.log()}")
        ready = json.loads(line)
        #: The URLs for providers and workers, over TLS and in cleartext (HTTP/2 or HTTP/1.1); and for operators.
        self.url, self.plain_url = f"https://{ready['edge']}", f"http://{ready['plain']}"
        self.admin_url = f"http://{ready['admin']}"
        self.host, port = ready["edge"].rsplit(":", 1)
        self.port = int(port)
        #: The PEM files of the authority to trust, and of a provider's key for clients that need one (any is accepted).
        self.ca, self.provider_key = str(folder / ".wakegate/ca.pem"), str(folder / ".wakegate/provider.p8")
        #: The environment variables with which workers, examples and the command line tool find the gateway.
        self.env = {"WAKEGATE_URL": self.url, "WAKEGATE_CA": self.ca}
        self._edge = self._connection()
        self._admin = httpx.Client(base_url=self.admin_url, trust_env=False, timeout=10)

    def _connection(self) -> httpx.Client:
        trust = ssl.create_default_context(cafile=self.ca)
        return httpx.Client(base_url=self.url, http2=True, verify=trust, trust_env=False, timeout=10)

    def log(self) -> str:
        """Returns the gateway's log."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def close(self) -> None:
        self._edge.close()
        self._admin.close()
        self._process.terminate()
        try:
            self._process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def push(
        self,
        device: str = DEVICE, *, topic: str = "com.example.app", payload: Optional[Mapping[str, Any]] = None,
        priority: int = 5, push_type: str = "background", **headers: str,
    ) -> PushAnswer:
        """Pushes like a provider. Further headers are keyword arguments with Python names: `apns_id=...`."""
        names = {"apns-topic": topic, "apns-push-type": push_type, "apns-priority": str(priority)}
        names.update({name.replace("_", "-"): value for name, value in headers.items()})
        body = {"aps": {"content-available": 1}} if payload is None else payload
        response = self._edge.post(f"/3/device/{device}", headers=names, json=body)
        reason = response.json().get("reason") if response.content else None
        found = response.headers
        disposition, warning = found.get("wakegate-disposition"), found.get("wakegate-warning")
        return PushAnswer(response.status_code, found.get("apns-id", ""), reason, disposition, warning)

    def faults(self, rules: Rules) -> None:
        """Replaces the fault rules, which refuse, delay or drop pushes: see the article "Fault mode"."""
        self.ask("PUT", "/v1/faults", {"rules": list(rules)})

    def outcome(self, apns_id: str, timeout: float = 10) -> str:
        """Returns the outcome of a push: completed, coalesced, discarded ...; waits until it is no longer pending.
        Raises LookupError if no push with this id was accepted."""
        end = time.monotonic() + timeout
        while True:
            state = str(self.ask("GET", f"/v1/pushes/{apns_id}")["state"])
            if state not in ("pending", "inFlight") or time.monotonic() > end:
                return state
            time.sleep(0.02)

    def wait_for_wake(
        self, topic: str = "com.example.app", timeout: float = 10, result: str = "newData", pass_interval: bool = False
    ) -> Push:
        """Acts as the worker of a topic: takes one wake, answers it, and returns its push. Fails the test if none comes
        in time. `pass_interval` ends the launch interval at once. If the test has a worker, use `outcome` instead."""
        __tracebackhide__ = True  # A failure is shown at the line of the test.
        end, reader, why = time.monotonic() + timeout, EventReader(), ""
        path, unanswered = f"/v1/topics/{topic}/wakes?slots=1&name=pytest", contextlib.suppress(httpx.ReadTimeout)
        limit = {"timeout": _Until(end)}
        # A separate connection, whose end also ends the stream. httpx does not reset abandoned streams.
        with unanswered, self._connection() as client, client.stream("GET", path, extensions=limit) as stream:
            if pass_interval:
                self.pass_interval(topic)
            with unanswered:
                for chunk in stream.raise_for_status().iter_raw():
                    for event in reader.feed(chunk):
                        if event.name == "wake":
                            push = Push(json.loads(event.data, parse_int=integer))
                            self._edge.post(f"/v1/streams/{stream.headers['wakegate-stream']}/drain")
                            self._edge.post(f"/v1/wakes/{push.id}", json={"result": result}).raise_for_status()
                            return push
                    if time.monotonic() > end:
                        break
            why = self._why(topic)  # While this worker is subscribed.
        pytest.fail(f"no wake of {topic} came within {timeout:g} s{why or self._why(topic)}")

    def _why(self, topic: str) -> str:
        """Returns a line for each device of a topic that was pushed to."""
        tokens = dict.fromkeys(each["device"] for each in self.ask("GET", f"/v1/pushes?topic={topic}")["pushes"])
        found = [self.explain(token) for token in tokens]
        lines = [f"{each['token'][:8]}...: {each['why']}" for each in found] or ["nothing was pushed to it"]
        if any(each["pending"] and each["nextEligibleAt"] for each in found):
            lines.append("to let the launch interval pass at once, write wait_for_wake(..., pass_interval=True)")
        return "".join(f"\n  {line}" for line in lines)

    def pass_interval(self, topic: str = "com.example.app") -> None:
        """Launches the pending pushes of a topic as if the launch interval had passed. Needs a connected worker."""
        end = time.monotonic() + 2
        for push in self.ask("GET", f"/v1/pushes?topic={topic}&outcome=pending")["pushes"]:
            launch = f"/v1/devices/{push['device']}/simulate-launch"
            while self._admin.post(launch).status_code == 409 and time.monotonic() < end:
                time.sleep(0.02)  # The gateway may not know of the worker yet.

    def explain(self, device: str = DEVICE) -> Dict[str, Any]:
        """Returns the policy's complete state of a device; `why` explains in a sentence what it waits for."""
        return dict(self.ask("GET", f"/v1/devices/{device}"))

    def ask(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None) -> Any:
        """Sends a request to the admin API. Raises LookupError for 404, and an AssertionError that quotes any other
        refusal."""
        response = self._admin.request(method, path, json=body)
        if response.status_code == 404:
            raise LookupError(response.text)
        if not response.is_success:
            raise AssertionError(f"{method} {path}: {response.status_code} {response.text}")
        return response.json() if response.content else None


def find_program() -> str:
    """Returns the program that WAKEGATE_PROGRAM names, or the one in PATH; skips the test if there is none."""
    named = os.environ.get("WAKEGATE_PROGRAM")
    found = shutil.which(named or "wakegate")
    if found is None:
        where = f"WAKEGATE_PROGRAM names {named}, which cannot be run" if named else "wakegate is not in PATH"
        pytest.skip(f"{where}; install it or set WAKEGATE_PROGRAM to the path of the program")
    return str(Path(found).absolute())


@pytest.fixture
def wakegate(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WakeGate]:
    """A gateway that runs during the test. Pushes to a device may be launched 1 ms apart by default."""
    marker = request.node.get_closest_marker("wakegate")
    given = marker.kwargs if marker else {}
    if marker and (marker.args or not given.keys() <= {"launch_interval", "faults", "settings"}):
        wrong = ", ".join([*map(repr, marker.args), *given])
        pytest.fail(f"the marker wakegate takes launch_interval, faults, settings, not {wrong}", pytrace=False)
    gateway = WakeGate(find_program(), tmp_path, **given)
    failures = request.session.testsfailed
    try:
        yield gateway
    finally:
        gateway.close()
        if request.session.testsfailed > failures:  # Shown with what the test wrote.
            print("wakegate dev:", gateway.log(), sep="\n")


def pytest_configure(config: pytest.Config) -> None:
    text = "wakegate(launch_interval, faults, settings): how the gateway of the fixture `wakegate` is set up"
    config.addinivalue_line("markers", text)
