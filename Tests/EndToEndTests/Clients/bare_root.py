"""Runs what deploy/Containerfile makes, without an engine for containers and without a registry: in seconds.

Arguments: the checkout, the program, a folder to work in. The root is the program and the libraries that it is linked
with, as read-only as the image's; user, entry point, command, stop signal and health check are those of the file. It
runs in a mount, a process and a network namespace of its own, as root. Prints each fault, and ends with 1 when there was
one. That the packages of the image are enough, and that nothing secret is in its layers, is for deploy/test-image.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys

checkout, program, work = sys.argv[1:4]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(checkout, "deploy/lib"))
from image import secrets  # noqa: E402
from shared import waiting  # noqa: E402

WAIT_SECONDS = 60
TOPIC, DEVICE = "com.example.app", "0badcafe" * 8
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, MS_BIND_FLAGS = 38, 24, "bind,remount,ro"
faults = []
libc = ctypes.CDLL(None, use_errno=True)
root = os.path.join(work, "root")


def check(is_so, what):
    if not is_so:
        faults.append(what)


def until(what, is_so):
    if not waiting.until(is_so, WAIT_SECONDS, 0.05):
        raise SystemExit(f"not in time: {what}\n{log()}")


def described():
    """What the last stage of the Containerfile says of itself."""
    with open(os.path.join(checkout, "deploy/Containerfile"), encoding="utf-8") as file:
        stage = file.read().split("\nFROM ")[-1]

    def word(name):
        return re.search(rf"^{name} (.+)$", stage, re.MULTILINE)[1]

    return {
        "user": int(word("USER").split(":")[0]), "entry": json.loads(word("ENTRYPOINT")),
        "command": json.loads(word("CMD")), "signal": signal.Signals[word("STOPSIGNAL")],
        "folder": word("WORKDIR"), "health": json.loads(re.search(r"^HEALTHCHECK .* CMD (\[.+\])$", stage, re.M)[1]),
    }  # fmt: skip


def make_root(image):
    shutil.copy2(program, place("/usr/bin/wakegate"))
    for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
        if match := re.search(r"(/\S+) \(0x", line):
            shutil.copy2(os.path.realpath(match[1]), place(match[1]))
    for folder in ("proc", "dev", "etc/wakegate", image["folder"].lstrip("/")):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    for name in ("null", "urandom"):
        open(os.path.join(root, "dev", name), "w").close()


def place(path):
    inside = root + path
    os.makedirs(os.path.dirname(inside), exist_ok=True)
    return inside


def look_for_secrets():
    # The libraries are Debian's, one of which has keys to test itself with.
    with open(root + "/usr/bin/wakegate", "rb") as file:
        faults.extend(secrets.of_file("usr/bin/wakegate", file.read()))


def configure(image):
    etc = os.path.join(work, "etc")
    os.makedirs(etc)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{etc}/gateway.key",
         "-out", f"{etc}/gateway.pem"], check=True, capture_output=True,
    )  # fmt: skip
    with open(f"{etc}/wakegate.json5", "w", encoding="utf-8") as file:
        file.write(
            '{ edge: "127.0.0.1:2197", registration: "open", policy: { launchInterval: 1 },\n'
            '  tls: { certificate: "/etc/wakegate/gateway.pem", key: "/etc/wakegate/gateway.key" } }\n'
        )
    for name in os.listdir(etc):
        os.chown(os.path.join(etc, name), image["user"], image["user"])
    volume = os.path.join(work, "volume")
    os.makedirs(volume, mode=0o700)
    os.chown(volume, image["user"], image["user"])
    mount("--bind", root, root)
    mount("-o", MS_BIND_FLAGS, root)
    mount("--bind", etc, os.path.join(root, "etc/wakegate"))
    mount("--bind", volume, root + image["folder"])
    mount("-t", "proc", "proc", os.path.join(root, "proc"))
    for name in ("null", "urandom"):
        mount("--bind", f"/dev/{name}", os.path.join(root, "dev", name))


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def enter(image):
    """Makes this process one of the image's user, in its root, without a right and without a way to get one."""
    os.chroot(root)
    os.chdir(image["folder"])
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setgid(image["user"])
    os.setuid(image["user"])
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def inside(image, words, **options):
    return subprocess.Popen(words, preexec_fn=lambda: enter(image), env={"PATH": "/usr/bin"}, **options)


def run(image, *words):
    process = inside(image, ["/usr/bin/wakegate", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return process.communicate(timeout=WAIT_SECONDS)[0]


def start(image):
    with open(os.path.join(work, "log"), "a") as output:
        gateway = inside(image, image["entry"] + image["command"], stdout=output, stderr=output)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    until("healthy", lambda: gateway.poll() is not None or inside(image, image["health"], **quiet).wait() == 0)
    check(gateway.poll() is None, f"the gateway ended: {log()}")
    return gateway


def log():
    with open(os.path.join(work, "log"), encoding="utf-8") as file:
        return file.read()


def figure(image, *path):
    value = json.loads(run(image, "stats", "--json"))
    for name in path:
        value = value.get(name, 0) if isinstance(value, dict) else 0
    return value


def look_at_rights(gateway, image):
    with open(f"/proc/{gateway.pid}/status", encoding="utf-8") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    check(status["Uid"].split() == [str(image["user"])] * 4, f"the gateway is user {status['Uid']}")
    check(image["user"] > 999, "the image's user is one of the system's")
    check(int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0, "the gateway has or may get capabilities")
    check(status["NoNewPrivs"] == "1", "the gateway could get privileges")
    check(os.statvfs(root).f_flag & os.ST_RDONLY, "the root can be written to")


def push(image):
    return run(
        image, "push", DEVICE, "--topic", TOPIC, "--gateway", "https://127.0.0.1:2197", "--ca",
        "/etc/wakegate/gateway.pem",
    )  # fmt: skip


def main():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    image = described()
    make_root(image)
    look_for_secrets()
    configure(image)
    gateway = start(image)
    look_at_rights(gateway, image)
    worker = subprocess.Popen(
        [program, "worker", "--topic", TOPIC, "--gateway", "https://127.0.0.1:2197", "--ca", f"{work}/etc/gateway.pem",
         "--", "sh", "-c", "until [ -e released ]; do sleep 0.05; done"], cwd=work, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until("a worker", lambda: figure(image, "workers", "connected") == 1)
    answer = push(image)
    check(answer.startswith("200 launched"), f"the push was answered: {answer}")
    until("a wake in flight", lambda: figure(image, "pushes", "inFlight") == 1)
    gateway.send_signal(image["signal"])
    until("it drains", lambda: re.search(r" draining( |$)", log(), re.MULTILINE))
    check(gateway.poll() is None, "it did not wait for the wake in flight")
    open(os.path.join(work, "released"), "w").close()
    check(gateway.wait(WAIT_SECONDS) == 0, f"it ended with {gateway.returncode}: {log()}")
    check("drainTimedOut" not in log(), "the wake in flight was given up")
    worker.terminate()
    worker.wait(WAIT_SECONDS)
    gateway = start(image)
    check(figure(image, "wakes", "results", "newData") == 1, f"after the restart: {run(image, 'stats')}")
    gateway.send_signal(image["signal"])
    check(gateway.wait(WAIT_SECONDS) == 0, "the second gateway did not end on its own")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
