"""Instructions of a push, counted by callgrind, of the gateway, in memory and durable, and of nghttpd under the same
load.

The count depends on the program and on the number of requests per batch, and hardly on other load of the machine: runs
differ by 3 percent, and CPU time by 10 percent. The kernel's instructions are not counted.
"""

import argparse
import os
import re
import subprocess

from bench import push_load
from bench.tables import Table
from shared import processes

# The last run is long enough to include the usual share of the delivery log's merges. With 40,000, durable counts
# differ by a tenth.
WARM_UP, FEWER, MORE = 10_000, 10_000, 120_000
STORES = {"memory": "gateway, memory", "sqlite": "gateway, durable"}


class Count:
    """Callgrind around one server: `prefix` starts it, `taken` returns the instructions since the last call."""

    def __init__(self, folder: str):
        self.folder = folder
        self.dumps = 0
        self.prefix = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind"]

    def taken(self, server: processes.Program) -> int:
        self.dumps += 1
        subprocess.run(["callgrind_control", "--dump", str(server.pid)], check=True, capture_output=True)
        path = os.path.join(self.folder, f"callgrind.{self.dumps}")
        if not os.path.exists(path):
            raise SystemExit(f"callgrind left no count of {server.pid} in {self.folder}")
        with open(path, encoding="utf-8", errors="replace") as file:
            return int(re.search(r"^totals: (\d+)", file.read(), re.MULTILINE).group(1))


def each(
    count: Count, server: processes.Program, base: str, folder: str, name: str,
    connections: int = push_load.CONNECTIONS,
) -> float:  # fmt: skip
    """Returns the instructions of one more request: the difference between two runs with the same connections."""

    def run(number: int) -> int:
        push_load.run(base, folder, name, connections, push_load.STREAMS, number)
        return count.taken(server)

    run(WARM_UP)
    before = run(FEWER)
    return (run(MORE) - before) / (MORE - FEWER)


def counted(products: str, folder: str, store: str) -> tuple[Count, processes.Gateway]:
    """Starts a gateway under callgrind, with its state and counts in a separate folder."""
    place = os.path.join(folder, store)
    os.mkdir(place)
    count = Count(place)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wait_in_main.c")
    preload = processes.compiled(source, os.path.join(place, "wait_in_main.so"), "-shared", "-fPIC")
    # valgrind 3.19 cannot read the program's debug information.
    program = os.path.join(place, "wakegate")
    subprocess.run(["strip", "--strip-debug", "-o", program, os.path.join(products, "wakegate")], check=True)
    prefix = ["env", f"LD_PRELOAD={preload}", *count.prefix]
    return count, processes.Gateway(place, place, prefix, [f"store={store}"])


def measure(options: argparse.Namespace, folder: str) -> list[Table]:
    push_load.write_inputs(folder)
    counts: dict[tuple[str, str], float] = {}
    key_and_certificate: tuple[str, str] | None = None
    for store, name in STORES.items():
        count, gateway = counted(options.products, folder, store)
        with gateway:
            key_and_certificate = tuple(os.path.join(gateway.state, file) for file in ("server.key", "server.pem"))
            for scheme, base in (("h2c", f"http://{gateway.plain}"), ("TLS", f"https://{gateway.edge}")):
                counts[scheme, name] = each(count, gateway, base, folder, "gateway")
    for scheme, files in (("h2c", None), ("TLS", key_and_certificate)):
        place = os.path.join(folder, scheme)
        os.mkdir(place)
        count = Count(place)
        with processes.Nghttpd(place, count.prefix, files) as server:
            base = f"{'https' if files else 'http'}://{server.address}"
            counts[scheme, "nghttpd"] = each(count, server, base, folder, "nghttpd")
    rows = [
        [f"{scheme}, {server}", f"{count:,.0f}", f"{count / counts[scheme, 'nghttpd']:.2f}"]
        for (scheme, server), count in counts.items()
    ]
    title = f"Instructions of a POST, {push_load.CONNECTIONS} connections x {push_load.STREAMS} streams"
    return [Table(title, ["", "instructions", "of nghttpd's"], rows)]
