"""Makes the state folder of an older version that tests take over, and what that version answered of it.

    make.py WAKEGATE NAME

runs the program WAKEGATE (`swift build -c release --product wakegate` of that version) as `wakegate dev` in a folder of
its own, kills it with wakes in flight, and writes NAME.tar.gz (the journal with its log, and the history) and NAME.json
beside itself. In the JSON: `stats`, `topics`, and `devices` by token as the admin listener answered just before, and
`pushes`: the apns-id of each push with the name that this program gives it.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

NEWS, MAIL, QUIET = "com.example.news", "com.example.mail", "com.example.quiet"
PAYLOAD = {"aps": {"content-available": 1}, "edition": 7, "text": "Grüße\u2028"}


def token(number):
    return f"{number:02x}" * 32


def eventually(what, ask):
    for _ in range(600):
        if found := ask():
            return found
        time.sleep(0.05)
    raise RuntimeError(f"not within 30 s: {what}")


class Gateway:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        # Nothing waits for long by itself, and nothing expires for ten years.
        settings = ["policy.defaultTTL=315360000", "policy.executionWindow=3600", "policy.maxExtension=7200"]
        options = [option for setting in settings for option in ("--set", setting)]
        free = [option for name in ("--edge", "--admin", "--plain") for option in (name, "127.0.0.1:0")]
        self.process = subprocess.Popen(
            [program, "dev", *free, *options], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.ready = json.loads(self.process.stdout.readline())
        self.pushes = {}

    def ask(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        url = f"http://{self.ready['admin']}{path}"
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, method=method)) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return json.loads(error.read())

    def push(self, name, device, topic, *fields, payload=PAYLOAD, priority=5):
        given = [f"apns-topic: {topic}", "apns-push-type: background", f"apns-priority: {priority}", *fields]
        headers = [option for field in given for option in ("-H", field)]
        curl = ["curl", "-s", "-i", "--http2", "--noproxy", "*", "--cacert", ".wakegate/ca.pem", *headers]
        url = f"https://{self.ready['edge']}/3/device/{token(device)}"
        answer = subprocess.run(
            [*curl, "--data-binary", json.dumps(payload), url], cwd=self.folder, capture_output=True, text=True, check=True
        ).stdout
        lines = dict(line.split(": ", 1) for line in answer.splitlines() if ": " in line)
        self.pushes[name] = lines["apns-id"]

    def worker(self, topic, script, *options):
        command = [self.program, "worker", "--topic", topic, *options, "--", "bash", "-c", script]
        return subprocess.Popen(command, cwd=self.folder, stderr=subprocess.DEVNULL)

    def results(self):
        return self.ask("/v1/stats")["wakes"]["results"]


def live(gateway):
    """What happens before it is killed; ends with two wakes in flight."""
    launched = lambda count: eventually("launches", lambda: gateway.ask("/v1/stats")["wakes"]["launched"] == count)
    # Wakes that end in each way.
    for device, (name, status) in enumerate([("newData", 0), ("noData", 3), ("failed", 1)], 1):
        gateway.push(name, device, NEWS)
        worker = gateway.worker(NEWS, f"cat >/dev/null; exit {status}")
        eventually(name, lambda: gateway.results()[name] == 1)
        worker.terminate()
        worker.wait()
    # Pending: within the interval of a launch, coalesced, of a trace, of each priority.
    gateway.push("older", 1, NEWS)
    gateway.push("newer", 1, NEWS, "apns-collapse-id: edition", payload={"aps": {"content-available": 1}, "n": 1.000e30})
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    gateway.push("traced", 2, NEWS, f"traceparent: {trace}", "tracestate: vendor=1")
    gateway.push("urgent", 4, MAIL, priority=10)
    gateway.push("patient", 5, MAIL, priority=1)
    identifier = "1A2b3C4d-0000-4000-8000-00000000000A"
    gateway.push("named", 6, MAIL, f"apns-id: {identifier}")
    gateway.push("asleep", 7, MAIL, payload={"aps": {"alert": "no wake"}})
    gateway.push("at once or never", 8, QUIET, "apns-expiration: 0")
    # Conditions, one of them of a device that gives its push up.
    report = lambda device, **fields: gateway.ask(f"/v1/devices/{token(device)}/conditions", fields, "PATCH")
    report(4, batteryLevel=0.0625, charging=False, lowPowerMode=True, thermalState="serious", network=True)
    report(5, network=False, backgroundRefresh="restricted", appState="active", batteryLevel=0.5)
    gateway.push("given up", 9, QUIET)
    report(9, appState="forceQuit", thermalState="critical")
    gateway.push("removed", 10, QUIET)
    gateway.ask(f"/v1/devices/{token(10)}", method="DELETE")
    gateway.ask(f"/v1/topics/{QUIET}/devices", {"token": token(11)}, "POST")
    # In flight: a push, which has a newer one behind it, and an empty wake.
    worker = gateway.worker("com.example.flight", "cat >/dev/null; sleep 1000", "--slots", "2")
    gateway.push("in flight", 12, "com.example.flight", "apns-collapse-id: flight")
    launched(4)
    gateway.push("behind it", 12, "com.example.flight")
    gateway.ask("/v1/topics/com.example.flight/devices", {"token": token(13)}, "POST")
    gateway.ask(f"/v1/devices/{token(13)}/simulate-launch", method="POST")
    launched(5)
    return worker


def main():
    program, name = os.path.abspath(sys.argv[1]), sys.argv[2]
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(program, folder)
        worker = live(gateway)
        devices = {token(number): gateway.ask(f"/v1/devices/{token(number)}") for number in range(1, 14)}
        answers = {"stats": gateway.ask("/v1/stats"), "topics": gateway.ask("/v1/topics")["topics"]}
        gateway.process.send_signal(signal.SIGKILL)
        gateway.process.wait()
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
