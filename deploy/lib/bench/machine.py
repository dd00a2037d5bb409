"""The properties of the machine and the versions, and whether other processes are running."""

import os
import platform
import re
import subprocess
import time

VERSIONS = {
    "Swift": ("swift", "--version"),
    "nghttpd and h2load": ("nghttpd", "--version"),
    "Redis": ("redis-cli", "--version"),
    "PostgreSQL": ("psql", "--version"),
    "OpenSSL": ("openssl", "version"),
}
IDLE_MIN = 0.9
LOOK_SECONDS = 1.0


def described() -> dict:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    with open("/proc/meminfo", encoding="ascii") as file:
        gibibytes = int(file.readline().split()[1]) / (1 << 20)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory": f"{gibibytes:.0f} GiB",
        "kernel": platform.release(),
        **{name: version(*command) for name, command in VERSIONS.items()},
        "commit": commit.stdout.strip() or "unknown",
    }


def version(*command: str) -> str:
    """Returns the first word that looks like a version in a program's output."""
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "not installed"
    found = re.search(r"\d+\.\d+[\w.]*", output.stdout + output.stderr)
    return found.group() if found else "unknown"


class Ticks:
    """The clocks of all cores together (proc_stat(5)), from its creation to the query."""

    def __init__(self) -> None:
        self.start = self.now()

    @staticmethod
    def now() -> dict[str, int]:
        with open("/proc/stat", encoding="ascii") as file:
            values = [int(word) for word in file.readline().split()[1:9]]
        return {"idle": values[3] + values[4], "stolen": values[7], "all": sum(values)}

    def share(self, name: str) -> float:
        now = self.now()
        return (now[name] - self.start[name]) / max(1, now["all"] - self.start["all"])


def idle() -> float:
    """Returns the idle share of the machine."""
    ticks = Ticks()
    time.sleep(LOOK_SECONDS)
    return ticks.share("idle")
