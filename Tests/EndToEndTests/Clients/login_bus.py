#!/usr/bin/env python3
"""A message bus of its own, and on it what logind says of seat0, or NetworkManager of the network.

    login_bus.py SOCKET [logind|network]

Each line of standard input is a command, answered with a line once it is done:
    start, stop      the bus, a dbus-daemon that listens at SOCKET
    pause, continue  the bus, which answers nobody in between
    come, leave      logind on it, or NetworkManager
    idle, active     what it answers from now on, and tells; of NetworkManager a number, its `Metered`
    quietly idle     the same, and tells nobody; so do `quietly active` and `quietly 1`
    error, text, nothing, empty
                     it answers with an error, a text, not at all, or with no value
    late             it answers `active` to the last question that it did not answer
    flood            it tells of a change a thousand times
    asked            how many questions there were
    started          whether the bus was made to start a logind that did not run: yes or no
"""

import ctypes
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile

CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
PATH, INTERFACE, MEMBER, ERROR_NAME, REPLY, DESTINATION, SENDER, SIGNATURE = range(1, 9)
PROPERTIES = "org.freedesktop.DBus.Properties"
# For each state, its name, and the object, the interface and the name of its property.
SERVICES = {
    "logind": (
        "org.freedesktop.login1", "/org/freedesktop/login1/seat/seat0", "org.freedesktop.login1.Seat", "IdleHint",
    ),
    "network": (
        "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager",
        "Metered",
    ),
}  # fmt: skip
TYPES = {PATH: "o", REPLY: "u", SIGNATURE: "g"}
CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={}</listen>
  <servicedir>{}</servicedir>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
  </policy>
</busconfig>
"""


def aligned(data, size):
    return data + b"\0" * (-len(data) % size)


def text(value):
    data = value.encode()
    return struct.pack("<I", len(data)) + data + b"\0"


def signature(value):
    return bytes([len(value)]) + value.encode() + b"\0"


def variant(kind, value):
    """A variant at the beginning of a body, or at another multiple of eight."""
    return aligned(signature(kind), 4) + (text(value) if kind == "s" else struct.pack("<I", value))


def message(kind, serial, fields, body=b""):
    packed = b""
    for code, value in fields.items():
        form = TYPES.get(code, "s")
        packed = aligned(packed, 8) + bytes([code]) + signature(form)
        if form == "g":
            packed += signature(value)
        else:
            packed = aligned(packed, 4) + (struct.pack("<I", value) if form == "u" else text(value))
    head = struct.pack("<cBBBIII", b"l", kind, 0, 1, len(body), serial, len(packed))
    return aligned(head + packed, 8) + body


def fields_of(data):
    """The fields of a message's head, all of them texts or numbers."""
    fields, at, end = {}, 16, 16 + struct.unpack_from("<I", data, 12)[0]
    while at < end:
        at += -at % 8
        code, form = data[at], chr(data[at + 2])
        at += 4
        if form == "g":
            fields[code] = data[at + 1 : at + 1 + data[at]].decode()
            at += data[at] + 2
            continue
        at += -at % 4
        number = struct.unpack_from("<I", data, at)[0]
        at += 4
        fields[code] = number if form == "u" else data[at : at + number].decode()
        at += 0 if form == "u" else number + 1
    return fields


class Service:
    """A connection that owns the name of logind, or of NetworkManager."""

    def __init__(self, path, kind):
        self.name, self.object, self.interface, self.property = SERVICES[kind]
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.serial, self.data = 0, b""
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
        assert self.socket.recv(4096).startswith(b"OK ")
        self.socket.sendall(b"BEGIN\r\n")
        self.ask("Hello")
        self.ask("RequestName", "su", aligned(text(self.name), 4) + struct.pack("<I", 4))

    def ask(self, member, form="", body=b""):
        bus = "org.freedesktop.DBus"
        fields = {PATH: "/org/freedesktop/DBus", INTERFACE: bus, MEMBER: member, DESTINATION: bus}
        serial = self.send(CALL, {**fields, **({SIGNATURE: form} if form else {})}, body)
        while True:
            for kind, found, _ in self.received():
                if found.get(REPLY) == serial:
                    assert kind == RETURN, found
                    return

    def send(self, kind, fields, body=b""):
        self.serial += 1
        self.socket.sendall(message(kind, self.serial, fields, body))
        return self.serial

    def received(self):
        """The messages that are there, after waiting for some; None when the bus has gone."""
        more = self.socket.recv(65536)
        if not more:
            return None
        self.data += more
        messages = []
        while len(self.data) >= 16:
            body, serial, head = struct.unpack_from("<III", self.data, 4)
            start = 16 + head + -head % 8
            if len(self.data) < start + body:
                break
            messages.append((self.data[1], fields_of(self.data), serial))
            self.data = self.data[start + body :]
        return messages

    def tell(self, mode):
        fields = {PATH: self.object, INTERFACE: PROPERTIES, MEMBER: "PropertiesChanged", SIGNATURE: "sa{sv}as"}
        # The entries begin at a multiple of eight, and a boolean or a number at one of four.
        form, value = ("u", int(mode)) if mode.isdigit() else ("b", mode == "idle")
        entry = aligned(text(self.property) + signature(form), 4) + struct.pack("<I", value)
        head = aligned(text(self.interface), 4) + struct.pack("<I", len(entry))
        self.send(SIGNAL, fields, aligned(aligned(head, 8) + entry, 4) + struct.pack("<I", 0))

    def answer(self, mode, question):
        to = {DESTINATION: question[0][SENDER], REPLY: question[1]}
        if mode == "error":
            self.send(ERROR, {**to, ERROR_NAME: "org.freedesktop.DBus.Error.AccessDenied"})
        elif mode == "empty":
            self.send(RETURN, to)
        elif mode == "text":
            self.send(RETURN, {**to, SIGNATURE: "v"}, variant("s", "true"))
        elif mode.isdigit():
            self.send(RETURN, {**to, SIGNATURE: "v"}, variant("u", int(mode)))
        else:
            self.send(RETURN, {**to, SIGNATURE: "v"}, variant("b", mode == "idle"))


class Stage:
    def __init__(self, path, kind="logind"):
        self.path, self.kind, self.bus, self.logind = path, kind, None, None
        self.mode, self.asked, self.unanswered = "idle", 0, None
        self.folder = tempfile.TemporaryDirectory()

    def start(self):
        configuration = os.path.join(self.folder.name, "bus.conf")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(self.path, self.folder.name))
        name = SERVICES[self.kind][0]
        with open(os.path.join(self.folder.name, name + ".service"), "w", encoding="utf-8") as file:
            file.write(f"[D-BUS Service]\nName={name}\nExec=/usr/bin/touch {self.folder.name}/started\n")
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.bus = subprocess.Popen(
            ["dbus-daemon", "--config-file=" + configuration, "--nofork", "--nopidfile", "--print-address"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL),
        )
        # The bus writes its address when it listens.
        assert self.bus.stdout.readline()

    def stop(self):
        self.bus.kill()
        self.bus.wait()
        self.bus.stdout.close()
        self.logind = None

    def serve(self):
        messages = self.logind.received()
        if messages is None:
            self.logind = None
        for kind, fields, serial in messages or []:
            if kind != CALL or fields.get(INTERFACE) != PROPERTIES or fields.get(PATH) != self.logind.object:
                continue
            self.asked += 1
            if self.mode == "nothing":
                self.unanswered = (fields, serial)
            else:
                self.logind.answer(self.mode, (fields, serial))

    def come(self):
        self.logind = Service(self.path, self.kind)

    def leave(self):
        self.logind.socket.close()
        self.logind = None

    def flood(self):
        for _ in range(1000):
            self.logind.tell(self.mode)

    def obey(self, words):
        commands = {
            "asked": lambda: str(self.asked),
            "started": lambda: "yes" if os.path.exists(os.path.join(self.folder.name, "started")) else "no",
            "start": self.start, "stop": self.stop, "come": self.come, "leave": self.leave, "flood": self.flood,
            "pause": lambda: self.bus.send_signal(signal.SIGSTOP),
            "continue": lambda: self.bus.send_signal(signal.SIGCONT),
            "late": lambda: self.logind.answer("active", self.unanswered),
        }  # fmt: skip
        if words[0] in commands:
            return commands[words[0]]() or "done"
        self.mode = words[-1]
        if (words[0] in ("idle", "active") or words[0].isdigit()) and self.logind:
            self.logind.tell(self.mode)
        return "done"


def main():
    stage, unread = Stage(*sys.argv[1:]), b""
    while True:
        inputs = [0] + ([stage.logind.socket] if stage.logind else [])
        ready = select.select(inputs, [], [])[0]
        if any(source != 0 for source in ready):
            stage.serve()
        if 0 not in ready:
            continue
        more = os.read(0, 4096)
        if not more:
            break
        *lines, unread = (unread + more).split(b"\n")
        for line in lines:
            sys.stdout.write(stage.obey(line.decode().split()) + "\n")
            sys.stdout.flush()
    if stage.bus:
        stage.stop()


main()
