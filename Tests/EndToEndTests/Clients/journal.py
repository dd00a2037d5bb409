"""Runs a program whose standard error is the journal, as far as it can see, and writes the entries it sends there.

Arguments: the program and its arguments. To be run in a mount namespace of its own, whose `/run` it covers. Each entry
is one JSON object on descriptor 1, behind the program's own lines.
"""

import json
import os
import socket
import struct
import subprocess
import sys

subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
os.makedirs("/run/systemd/journal")
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind("/run/systemd/journal/socket")
status = os.fstat(2)
os.environ["JOURNAL_STREAM"] = f"{status.st_dev}:{status.st_ino}"
program = subprocess.Popen(sys.argv[1:])


def fields(entry):
    """The native protocol: NAME=VALUE and a line feed, or NAME, line feed, size and VALUE."""
    found, rest = {}, entry
    while rest:
        line, rest = rest.split(b"\n", 1)
        if b"=" in line:
            name, value = line.split(b"=", 1)
        else:
            (size,) = struct.unpack("<Q", rest[:8])
            name, value, rest = line, rest[8 : 8 + size], rest[9 + size :]
        found[name.decode()] = value.decode()
    return found


while True:
    entry = fields(receiver.recv(1 << 20))
    print(json.dumps(entry), flush=True)
    if entry["WAKEGATE_EVENT"] == "stopped":
        break
sys.exit(program.wait())
