"""Instructions of a push, counted by callgrind: the gateway, in memory and durable, and nghttpd under the same load.

A count hangs on the program and on how many requests go together in a batch, and hardly on what else the machine does:
runs differ by three in a hundred, where CPU time differs by ten. What the kernel does is not counted.
"""

import glob
import os
import re
import subprocess

from bench import push_load
from clients import h2load
from shared import processes

STREAMS = 32
WARM_UP, FEWER, MORE = 10_000, 10_000, 40_000
STORES = {"memory": "gateway, memory", "sqlite": "gateway, durable"}
# What the history's thread alone calls. Its instructions hang on how large the lots are that events come in, which
# differ by more from run to run than what some comparisons look for.
HISTORY = "EventChunkWriter"


class Count:
    """Callgrind around one server: `prefix` starts it, `taken` gives the instructions since the last call, but for
    those of threads that call what `leaving_out` names."""

    def __init__(self, folder: str, leaving_out: str | None = None):
        self.folder = folder
        self.dumps = 0
        self.leaving_out = leaving_out
        self.left_out: set[str] = set()
        threads = "no" if leaving_out is None else "yes"
        self.prefix = [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind", f"--separate-threads={threads}"
        ]  # fmt: skip

    def taken(self, server: processes.Server) -> int:
        self.dumps += 1
        subprocess.run(["callgrind_control", "--dump", str(server.pid)], check=True, capture_output=True)
        # A file for each thread, whose number follows that of the dump, or one for all.
        threads = "" if self.leaving_out is None else "-*"
        files = glob.glob(os.path.join(self.folder, f"callgrind.{self.dumps}{threads}"))
        if not files:
            raise SystemExit(f"callgrind left no count of {server.pid} in {self.folder}")
        total = sum(map(self.total, files))
        if self.leaving_out is not None and not self.left_out:
            raise SystemExit(f"no thread of {server.pid} calls {self.leaving_out}, whose thread was to be left out")
        return total

    def total(self, path: str) -> int:
        thread = os.path.basename(path).partition("-")[2]
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if self.leaving_out is not None and self.leaving_out in text:
            self.left_out.add(thread)
        return 0 if thread in self.left_out else int(re.search(r"^totals: (\d+)", text, re.MULTILINE).group(1))


def preload(folder: str) -> str:
    library = os.path.join(folder, "wait_in_main.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wait_in_main.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def stripped(products: str, folder: str) -> str:
    """A folder with the program without its debug information, at which valgrind 3.19 gives up."""
    program = os.path.join(folder, "wakegate")
    subprocess.run(["strip", "--strip-debug", "-o", program, os.path.join(products, "wakegate")], check=True)
    return folder


def each(
    count: Count, server: processes.Server, base: str, uris: str, body: str,
    connections: int = push_load.CONNECTIONS, requests: tuple[int, int, int] = (WARM_UP, FEWER, MORE),
    headers: list[str] | None = None,
) -> float:  # fmt: skip
    """Instructions of one more request: the difference between two runs that connect alike."""

    def run(number: int) -> int:
        h2load.run(base, uris, body, headers or push_load.headers(), connections, STREAMS, number)
        return count.taken(server)

    warm_up, fewer, more = requests
    run(warm_up)
    before = run(fewer)
    return (run(more) - before) / (more - fewer)


def counted(
    products: str, folder: str, store: str, settings: list[str] | None = None, leaving_out: str | None = None
) -> tuple[Count, processes.Gateway]:
    """A gateway under callgrind, whose state and counts lie in a folder of their own."""
    place = os.path.join(folder, store)
    os.mkdir(place)
    count = Count(place, leaving_out)
    prefix = ["env", f"LD_PRELOAD={preload(place)}", *count.prefix]
    return count, processes.Gateway(stripped(products, place), place, prefix, [f"store={store}", *(settings or [])])


def durable(products: str, folder: str) -> float:
    """Instructions of a durable push over h2c, with the inputs that `push_load` writes into `folder`."""
    push_load.write_inputs(folder)
    count, gateway = counted(products, folder, "sqlite")
    with gateway:
        uris, body = os.path.join(folder, "gateway"), os.path.join(folder, "body")
        return round(each(count, gateway, f"http://{gateway.plain}", uris, body))


def measure(products: str, folder: str) -> dict:
    push_load.write_inputs(folder)
    body = os.path.join(folder, "body")
    rows: list[dict] = []
    key_and_certificate: tuple[str, str] | None = None
    for store, name in STORES.items():
        count, gateway = counted(products, folder, store)
        with gateway:
            key_and_certificate = tuple(os.path.join(gateway.state, file) for file in ("server.key", "server.pem"))
            for scheme, base in (("h2c", f"http://{gateway.plain}"), ("TLS", f"https://{gateway.edge}")):
                rows.append(row(scheme, name, each(count, gateway, base, os.path.join(folder, "gateway"), body)))
    for scheme, files in (("h2c", None), ("TLS", key_and_certificate)):
        place = os.path.join(folder, scheme)
        os.mkdir(place)
        count = Count(place)
        with processes.Nghttpd(place, count.prefix, files) as server:
            base = f"{'https' if files else 'http'}://{server.address}"
            rows.append(row(scheme, "nghttpd", each(count, server, base, os.path.join(folder, "nghttpd"), body)))
    return {"connections": push_load.CONNECTIONS, "streams": STREAMS, "rows": rows}


def row(scheme: str, server: str, instructions: float) -> dict:
    return {"scheme": scheme, "server": server, "instructions": round(instructions)}
