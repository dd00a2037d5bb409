#!/usr/bin/env python3
"""Plays systemd for one service: gives it sockets, hears what it says of itself, and stops a thread of it.

    service_manager.py [--socket NAME=HOST:PORT|NAME=unix:PATH]... [--watchdog MICROSECONDS] -- COMMAND...

What the service tells goes to standard output, `told: ` and the assignments of one notice on a line, and so do the
lines it writes itself, `wrote: `. Lines on standard input are commands: `stop NAME` stops the thread of that name and
says `stopped`, or `silent` once no notice came for a while, `continue` lets it go on, `hangup` sends SIGHUP, `end`
SIGTERM.
"""

import argparse
import contextlib
import ctypes
import fcntl
import functools
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000


say = functools.partial(print, flush=True)


def listening(address):
    if address.startswith("unix:"):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(address.removeprefix("unix:"))
        os.chmod(address.removeprefix("unix:"), 0o600)
        listener.listen()
        return listener
    host, port = address.rsplit(":", 1)
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    return socket.create_server((host.strip("[]"), int(port)), family=family)


def thread_named(process, name):
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/comm", encoding="utf-8") as file:
            if file.read().strip() == name:
                return int(thread)
    raise SystemExit(f"no thread is named {name}")


def trace(request, thread):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def place(sockets):
    """Opens the sockets as the descriptors 3, 4, ...; to be called before anything else is opened."""
    for number in range(3, 3 + len(sockets)):
        # Foundation learns of this process's end by a socket that it inherits, which may have such a number.
        with contextlib.suppress(OSError):
            fcntl.fcntl(number, fcntl.F_DUPFD, 100)
    high = [fcntl.fcntl(listening(address).detach(), fcntl.F_DUPFD, 100) for _, address in sockets]
    for index, descriptor in enumerate(high):
        os.dup2(descriptor, 3 + index)
        os.close(descriptor)


def start(options, sockets, notices):
    """The service, with the sockets that were placed."""
    environment = dict(os.environ, NOTIFY_SOCKET=notices)
    if options.watchdog:
        environment["WATCHDOG_USEC"] = str(options.watchdog)
    # The service uses its own process number to check that the variables are meant for it. Only the shell knows this
    # number.
    script = 'export LISTEN_PID=$$ WATCHDOG_PID=$$; exec "$@"'
    if sockets:
        environment["LISTEN_FDS"] = str(len(sockets))
        environment["LISTEN_FDNAMES"] = ":".join(name for name, _ in sockets)
    return subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", *options.command],
        bufsize=0,
        stdout=subprocess.PIPE,
        env=environment,
        # The kernel kills the service when this process is killed.
        preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL),
        pass_fds=range(3, 3 + len(sockets)),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", action="append", default=[])
    parser.add_argument("--watchdog", type=int, default=0)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    sockets = [text.split("=", 1) for text in options.socket]
    place(sockets)
    folder = tempfile.mkdtemp()
    notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notices.bind(f"{folder}/notify")
    service = start(options, sockets, f"{folder}/notify")
    stopped, quiet_since = None, None
    inputs = [notices, service.stdout, sys.stdin]
    while service.stdout in inputs:
        wait = 0.1 if quiet_since else None
        ready = select.select(inputs, [], [], wait)[0]
        if notices in ready:
            text = notices.recv(65536).decode()
            say("told: " + text.replace("\n", " "))
            quiet_since = time.monotonic() if quiet_since else None
        if quiet_since and time.monotonic() - quiet_since > 10 * options.watchdog / 1e6:
            say("silent")
            quiet_since = None
        if service.stdout in ready:
            line = service.stdout.readline().decode().rstrip("\n")
            if line:
                say("wrote: " + line)
            else:
                inputs.remove(service.stdout)
        if sys.stdin in ready:
            words = sys.stdin.readline().split()
            if not words:
                inputs.remove(sys.stdin)
            elif words[0] == "stop":
                stopped = thread_named(service.pid, words[1])
                trace(PTRACE_SEIZE, stopped)
                trace(PTRACE_INTERRUPT, stopped)
                os.waitpid(stopped, WALL)
                say("stopped")
                quiet_since = time.monotonic()
            elif words[0] == "continue":
                trace(PTRACE_DETACH, stopped)
            elif words[0] == "hangup":
                service.send_signal(signal.SIGHUP)
            elif words[0] == "end":
                service.send_signal(signal.SIGTERM)
    notices.setblocking(False)
    while select.select([notices], [], [], 0)[0]:
        say("told: " + notices.recv(65536).decode().replace("\n", " "))
    os.unlink(f"{folder}/notify")
    os.rmdir(folder)
    raise SystemExit(service.wait())


main()
