"""h2load with one process for each connection.

All connections of one h2load request the same paths in the same order at the same time. A hundred concurrent pushes
would then be for one device. No provider sends such a load, and it costs a gateway almost nothing.
"""

import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

# In addition to the time that the rate requires.
SECONDS_MAX = 600
# All use the same cipher. Otherwise, servers would choose different ones from a client's list.
TLS_CIPHER = "TLS_AES_128_GCM_SHA256"


def command(base: str, body: str, headers: list[str], together: int, streams: int, *options: str) -> list[str]:
    """Returns the command of one h2load for some connections, which share their paths."""
    cipher = ["--tls13-ciphers", TLS_CIPHER] if base.startswith("https:") else []
    shape = ["-t", "1", "-c", str(together), "-m", str(streams)]
    return ["h2load", *shape, "-d", body, "-B", base, *cipher, *options, *headers]


def check_cipher(output: str, base: str) -> None:
    """Ends the measurement if another cipher was used."""
    if base.startswith("https:") and f"Cipher: {TLS_CIPHER}\n" not in output:
        raise SystemExit(f"the cipher was not {TLS_CIPHER}; the run does not count:\n{output}")


def run(
    base: str, uris: str, body: str, headers: list[str], connections: int, streams: int, requests: int,
    prefix: list[str] | None = None, rate: int | None = None, together: int = 1, logs: str | None = None,
) -> float:  # fmt: skip
    """Sends the requests, and returns the seconds from the first active process to the end of the last. Any answer
    other than 2xx ends the measurement.

    `rate` limits each connection to this number of requests a second. `together` connections share a process and its
    paths. `logs` is a folder for a file with the requests of each process.
    """
    each = requests // connections * together
    options = ["-n", str(each), *(["--rps", str(rate)] if rate else [])]
    seconds_max = SECONDS_MAX + (requests // connections // rate if rate else 0)
    running = []
    for number in range(connections // together):
        log = ["--log-file", os.path.join(logs, str(number))] if logs else []
        words = command(base, body, headers, together, streams, *options, *log, "-i", f"{uris}.{number}")
        pipe, same = subprocess.PIPE, subprocess.STDOUT
        running.append(subprocess.Popen([*(prefix or []), *words], stdout=pipe, stderr=same, text=True))

    def end(process: subprocess.Popen) -> tuple[float, float]:
        """Returns the time at which it began, by its own report, and the time at which it ended. Reading the paths
        is not included."""
        output = process.communicate(timeout=seconds_max)[0]
        ended = time.monotonic()
        answered = re.search(r"status codes: (\d+) 2xx", output)
        if not answered or int(answered.group(1)) != each:
            raise SystemExit(f"not every reply of {base} was 2xx; the run does not count:\n{output}")
        check_cipher(output, base)
        return ended - seconds(output), ended

    with ThreadPoolExecutor(len(running)) as pool:
        times = list(pool.map(end, running))
    return max(ended for _, ended in times) - min(began for began, _ in times)


def seconds(output: str) -> float:
    """Returns the duration that one h2load reports."""
    value, unit = re.search(r"finished in ([\d.]+)(us|ms|s|m)", output).groups()
    return float(value) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}[unit]
