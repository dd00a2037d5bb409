"""Runs a command where the only name server takes questions and never answers.

Arguments: a file that is made at the first question, and the command. To be run in a user, mount and network namespace
of its own.
"""

import fcntl
import os
import socket
import struct
import subprocess
import sys
import tempfile

names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# SIOCSIFFLAGS: the loopback interface is up and running.
fcntl.ioctl(names, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
names.bind(("127.0.0.9", 53))
with tempfile.NamedTemporaryFile("w", suffix=".conf") as settings:
    settings.write("options timeout:30 attempts:5\n" + "nameserver 127.0.0.9\n" * 3)
    settings.flush()
    subprocess.run(["mount", "--bind", settings.name, os.path.realpath("/etc/resolv.conf")], check=True)

command = os.getpid()
if os.fork() == 0:
    for descriptor in range(3):
        os.close(descriptor)
    names.settimeout(1)
    while os.getppid() == command:
        try:
            names.recv(512)
            open(sys.argv[1], "w").close()
        except TimeoutError:
            pass
    os._exit(0)
os.execvp(sys.argv[2], sys.argv[2:])
