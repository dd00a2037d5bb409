"""Runs a command that is to end in time; of one that does not, tells where its threads are, and ends it:

    deploy/lib/run shared.within SECONDS COMMAND [ARGUMENTS]

Exits as the command does, or with 124 once it had to be ended. Where threads are is told by gdb, if that is installed.
"""

import re
import shutil
import subprocess
import sys

ENDED = 124
GDB_SECONDS = 120
# As gdb tells of a thread, and of a call whose source it knows.
THREAD = re.compile(r'^Thread \d+ \(.*"(?P<name>.*)"')
CALL = re.compile(r"^#\d+ .* at (?P<source>\S+\.swift:\d+)$")


def calls_of_threads(text: str) -> list[str]:
    """A line for each thread that is in code whose source is known: its name, and the calls it is in, the last first."""
    threads: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if thread := THREAD.match(line):
            threads.append((thread["name"], []))
        elif threads and (call := CALL.match(line)):
            threads[-1][1].append(call["source"].rpartition("/")[2])
    return [f"{name}: {' < '.join(calls)}" for name, calls in threads if calls]


def tell_where(pid: int) -> None:
    if not shutil.which("gdb"):
        print("gdb would tell where its threads are; it is not installed", file=sys.stderr)
        return
    command = ["gdb", "-nx", "-batch", "-p", str(pid), "-ex", "thread apply all backtrace 40"]
    try:
        told = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=GDB_SECONDS
        )
    except subprocess.TimeoutExpired:
        print(f"gdb did not tell within {GDB_SECONDS} s where its threads are", file=sys.stderr)
        return
    for line in calls_of_threads(told.stdout) or [told.stderr.strip()]:
        print(f"  {line}", file=sys.stderr)


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 64
    seconds, command = float(sys.argv[1]), sys.argv[2:]
    with subprocess.Popen(command) as process:
        try:
            return_code = process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            print(f"\nnot ended within {seconds:.0f} s, and ended: {' '.join(command)}", file=sys.stderr)
            tell_where(process.pid)
            process.kill()
            return ENDED
    return return_code if return_code >= 0 else 128 - return_code


if __name__ == "__main__":
    sys.exit(main())
