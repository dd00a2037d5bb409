"""Takes the picture of the dashboard that the README shows: a gateway with made-up devices, workers and tasks at work.

  .build/venv/bin/python deploy/lib/docs/picture.py [PROGRAM]

PROGRAM is wakegate, .build/debug/wakegate by default. The picture goes to the catalog of the module Gateway. Ends with
1 when it is no PNG of at most 150 kB.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright

root = pathlib.Path(__file__).resolve().parents[3]
program = sys.argv[1] if len(sys.argv) > 1 else str(root / ".build/debug/wakegate")
picture = root / "Sources/Gateway/Gateway/Gateway.docc/dashboard.png"
seconds = 75
bytes_max = 150_000
# The launches of a minute are those of half a day: intervals are short.
settings = ["policy.launchInterval=25", "policy.executionWindow=60", "policy.progressWindow=600"]
topics = {"com.example.mail": 160, "com.example.news": 90, "com.example.chat": 40}
chance = random.Random(7)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(url, body=None, method=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    try:
        with opener.open(urllib.request.Request(url, data, headers or {}, method=method)) as answer:
            text = answer.read()
    except urllib.error.HTTPError:
        return None
    return json.loads(text) if text else None


def work(plain, topic, name, slots, query=""):
    """A worker that answers each push, most of them with new data, and leaves tasks running."""
    stream = opener.open(f"{plain}/v1/topics/{topic}/wakes?slots={slots}&name={name}{query}")
    for line in stream:
        if not line.startswith(b"data: "):
            continue
        wake = json.loads(line[6:])
        if wake.get("kind") == "push":
            result = chance.choices(["newData", "noData", "failed"], [80, 17, 3])[0]
            pause = chance.uniform(0.1, 1.4)
            threading.Timer(pause, ask, [f"{plain}/v1/wakes/{wake['wake']}", {"result": result}]).start()


def push(plain, topic, device, priority):
    headers = {"apns-topic": topic, "apns-push-type": "background", "apns-priority": priority}
    ask(f"{plain}/3/device/{device}", {"aps": {"content-available": 1}}, headers=headers)


def export(plain, device, title):
    """A continued task of a person, whose wake is given back."""
    device_url = f"{plain}/v1/devices/{device}"
    ask(f"{device_url}/conditions", {"appState": "active"}, "PATCH")
    ask(f"{device_url}/tasks", {"identifier": "com.example.export", "kind": "continued", "title": title})
    while not (running := ask(f"{device_url}/tasks")["running"]):
        time.sleep(0.1)
    return running[0]["wake"]


def load(plain):
    devices = {topic: [chance.randbytes(32).hex() for _ in range(number)] for topic, number in topics.items()}
    for topic, workers in {"com.example.mail": 3, "com.example.news": 2, "com.example.chat": 1}.items():
        for number in range(1, workers + 1):
            name = f"{topic.split('.')[-1]}-{number}"
            arguments = (plain, topic, name, 16, "&task=com.example.*" if topic.endswith("mail") else "&push=1")
            threading.Thread(target=work, args=arguments, daemon=True).start()
    for token in devices["com.example.news"][:9]:
        push(plain, "com.example.news", token, "5")
        ask(f"{plain}/v1/devices/{token}/conditions", {"batteryLevel": 0.03}, "PATCH")
    for token in devices["com.example.mail"][:3]:
        push(plain, "com.example.mail", token, "5")
    tasks = [(export(plain, token, title), total, subtitle) for token, (title, total, subtitle) in zip(
        devices["com.example.mail"],
        [("Exporting Lisbon.mov", 2400, "4K, 24 frames a second"), ("Uploading 312 photos", 312, "to the family album"),
         ("Indexing the archive", 9000, "mail of 2019")])]
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        for _ in range(chance.randrange(6, 26)):
            topic = chance.choices(list(topics), [5, 3, 2])[0]
            push(plain, topic, chance.choice(devices[topic]), chance.choice(["5", "5", "5", "10"]))
        for index, (wake, total, subtitle) in enumerate(tasks):
            done = int(total * (0.82 - 0.2 * index) * (1 - left / seconds))
            ask(f"{plain}/v1/wakes/{wake}/progress", {"completed": done, "total": total, "subtitle": subtitle})
        time.sleep(0.4)


def main():
    with tempfile.TemporaryDirectory() as folder:
        chosen = [word for setting in settings for word in ("--set", setting)]
        gateway = subprocess.Popen(
            [program, "dev", "--edge", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--plain", "127.0.0.1:0",
             "--state", f"{folder}/state", *chosen], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            places = json.loads(gateway.stdout.readline())
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
                page = chromium.new_page(viewport={"width": 1280, "height": 820}, color_scheme="light")
                loading = threading.Thread(target=load, args=[f"http://{places['plain']}"], daemon=True)
                loading.start()
                page.goto(f"http://{places['admin']}/")
                expect(page.locator(".card")).to_have_count(3, timeout=30_000)
                loading.join()
                page.screenshot(path=picture)
                chromium.close()
        finally:
            gateway.terminate()
            gateway.wait(30)
    size = picture.stat().st_size
    print(f"{picture.relative_to(root)}: {size} bytes")
    return 0 if picture.read_bytes()[:4] == b"\x89PNG" and size <= bytes_max else 1


sys.exit(main())
