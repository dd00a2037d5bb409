"""Makes the state folder of an older version that tests take over, and what that version answered of it.

    PYTHONPATH=deploy/python .build/venv/bin/python Tests/EndToEndTests/FormerStates/make.py WAKEGATE NAME

runs the program WAKEGATE (`swift build -c release --product wakegate` of that version) as `wakegate dev` in a folder of
its own, kills it with wakes in flight, and writes NAME.tar.gz (the journal with its log, and the history) and NAME.json
beside itself. In the JSON: `stats`, `topics`, and `devices` by token as the admin listener answered just before, and
`pushes`: the apns-id of each push with the name that this program gives it.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from wakegate.pytest_plugin import WakeGate

NEWS, MAIL, QUIET = "com.example.news", "com.example.mail", "com.example.quiet"
PAYLOAD = {"aps": {"content-available": 1}, "edition": 7, "text": "Grüße\u2028"}
# Without conditions, no push waits for long, and none expires for ten years.
SETTINGS = {"store": "sqlite", "policy.defaultTTL": 315360000, "policy.executionWindow": 3600, "policy.maxExtension": 7200}


def token(number):
    return f"{number:02x}" * 32


def eventually(what, ask):
    for _ in range(600):
        if found := ask():
            return found
        time.sleep(0.05)
    raise RuntimeError(f"not within 30 s: {what}")


class Gateway(WakeGate):
    def __init__(self, program, folder):
        super().__init__(program, pathlib.Path(folder), launch_interval=900, settings=SETTINGS)
        self.program, self.folder, self.pushes = program, folder, {}

    def send(self, name, device, topic, payload=PAYLOAD, **fields):
        self.pushes[name] = self.push(token(device), topic=topic, payload=payload, **fields).apns_id

    def worker(self, topic, script, *options):
        command = [self.program, "worker", "--topic", topic, *options, "--", "bash", "-c", script]
        return subprocess.Popen(command, cwd=self.folder, stderr=subprocess.DEVNULL)

    def results(self):
        return self.stats()["wakes"]["results"]


def live(gateway):
    """What happens before it is killed; ends with two wakes in flight."""
    launched = lambda count: eventually("launches", lambda: gateway.stats()["wakes"]["launched"] == count)
    # Wakes that end in each way.
    for device, (name, status) in enumerate([("newData", 0), ("noData", 3), ("failed", 1)], 1):
        gateway.send(name, device, NEWS)
        worker = gateway.worker(NEWS, f"cat >/dev/null; exit {status}")
        eventually(name, lambda: gateway.results()[name] == 1)
        worker.terminate()
        worker.wait()
    # Pending: within a launch interval, coalesced, with a trace, and with each priority.
    gateway.send("older", 1, NEWS)
    gateway.send("newer", 1, NEWS, {"aps": {"content-available": 1}, "n": 1.000e30}, apns_collapse_id="edition")
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    gateway.send("traced", 2, NEWS, traceparent=trace, tracestate="vendor=1")
    gateway.send("urgent", 4, MAIL, priority=10)
    gateway.send("patient", 5, MAIL, priority=1)
    identifier = "1A2b3C4d-0000-4000-8000-00000000000A"
    gateway.send("named", 6, MAIL, apns_id=identifier)
    gateway.send("asleep", 7, MAIL, payload={"aps": {"alert": "no wake"}})
    gateway.send("at once or never", 8, QUIET, apns_expiration="0")
    # Conditions, including a device that gives up its push.
    report = lambda device, **fields: gateway.ask("PATCH", f"/v1/devices/{token(device)}/conditions", fields)
    report(4, batteryLevel=0.0625, charging=False, lowPowerMode=True, thermalState="serious", network=True)
    report(5, network=False, backgroundRefresh="restricted", appState="active", batteryLevel=0.5)
    gateway.send("given up", 9, QUIET)
    report(9, appState="forceQuit", thermalState="critical")
    gateway.send("removed", 10, QUIET)
    gateway.ask("DELETE", f"/v1/devices/{token(10)}")
    gateway.ask("POST", f"/v1/topics/{QUIET}/devices", {"token": token(11)})
    # In flight: a push, followed by a newer one, and an empty wake.
    worker = gateway.worker("com.example.flight", "cat >/dev/null; sleep 1000", "--slots", "2")
    gateway.send("in flight", 12, "com.example.flight", apns_collapse_id="flight")
    launched(4)
    gateway.send("behind it", 12, "com.example.flight")
    gateway.ask("POST", "/v1/topics/com.example.flight/devices", {"token": token(13)})
    gateway.ask("POST", f"/v1/devices/{token(13)}/simulate-launch")
    launched(5)
    return worker


def main():
    program, name = os.path.abspath(sys.argv[1]), sys.argv[2]
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(program, folder)
        worker = live(gateway)
        devices = {token(number): gateway.explain(token(number)) for number in range(1, 14)}
        answers = {"stats": gateway.stats(), "topics": gateway.ask("GET", "/v1/topics")["topics"]}
        gateway._process.send_signal(signal.SIGKILL)
        gateway.close()
        worker.kill()
        worker.wait()
        state = os.path.join(folder, ".wakegate")
        files = [file for file in sorted(os.listdir(state)) if ".sqlite" in file and not file.endswith("-shm")]
        tar = ["tar", "--owner=0", "--group=0", "--numeric-owner", "-C", state, "-czf", f"{here}/{name}.tar.gz"]
        subprocess.run([*tar, *files], check=True)
        with open(f"{here}/{name}.json", "w") as file:
            json.dump(answers | {"devices": devices, "pushes": gateway.pushes}, file, indent=1, sort_keys=True)
            file.write("\n")


main()
