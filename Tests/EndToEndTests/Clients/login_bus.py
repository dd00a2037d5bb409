#!/usr/bin/python3
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
import signal
import subprocess
import sys
import tempfile

import dbus.bus
import dbus.lowlevel
import dbus.mainloop.glib
from gi.repository import GLib

PROPERTIES = "org.freedesktop.DBus.Properties"
# For each service, its name, and the object, the interface and the name of its property.
SERVICES = {
    "logind": (
        "org.freedesktop.login1", "/org/freedesktop/login1/seat/seat0", "org.freedesktop.login1.Seat", "IdleHint",
    ),
    "network": (
        "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager",
        "Metered",
    ),
}  # fmt: skip


def value(mode):
    """The value of the property in a mode, with its type."""
    if mode == "text":
        return dbus.String("true")
    return dbus.UInt32(mode) if mode.isdigit() else dbus.Boolean(mode == "idle")


class Stage:
    def __init__(self, path, kind="logind"):
        self.path, self.bus, self.service = path, None, None
        self.name, self.object, self.interface, self.property = SERVICES[kind]
        self.mode, self.asked, self.unanswered = "idle", 0, None
        self.folder = tempfile.TemporaryDirectory()

    def start(self):
        # Where a bus of a session looks for programs to start.
        services = os.path.join(self.folder.name, "dbus-1/services")
        os.makedirs(services, exist_ok=True)
        with open(os.path.join(services, self.name + ".service"), "w", encoding="utf-8") as file:
            file.write(f"[D-BUS Service]\nName={self.name}\nExec=/usr/bin/touch {self.folder.name}/started\n")
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if os.path.exists(self.path):
            os.unlink(self.path)
        options = ["--session", "--nofork", "--nopidfile", "--print-address"]
        self.bus = subprocess.Popen(
            ["dbus-daemon", f"--address=unix:path={self.path}", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, "XDG_DATA_HOME": self.folder.name},
            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL),
        )
        # The bus writes its address when it listens.
        assert self.bus.stdout.readline()

    def stop(self):
        self.bus.kill()
        self.bus.wait()
        self.bus.stdout.close()
        self.service = None

    def come(self):
        self.service = dbus.bus.BusConnection(f"unix:path={self.path}")
        self.service.add_message_filter(self.take)
        self.service.request_name(self.name, dbus.bus.NAME_FLAG_DO_NOT_QUEUE)

    def leave(self):
        self.service.close()
        self.service = None

    def take(self, _, message):
        if message.get_interface() != PROPERTIES or message.get_path() != self.object:
            return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
        self.asked += 1
        if self.mode == "nothing":
            self.unanswered = message
        else:
            self.answer(self.mode, message)
        return dbus.lowlevel.HANDLER_RESULT_HANDLED

    def answer(self, mode, question):
        answer = dbus.lowlevel.MethodReturnMessage(question)
        if mode == "error":
            answer = dbus.lowlevel.ErrorMessage(question, "org.freedesktop.DBus.Error.AccessDenied", "")
        elif mode != "empty":
            answer.append(value(mode), signature="v")
        self.service.send_message(answer)

    def tell(self, times=1):
        change = dbus.lowlevel.SignalMessage(self.object, PROPERTIES, "PropertiesChanged")
        change.append(self.interface, {self.property: value(self.mode)}, [], signature="sa{sv}as")
        for _ in range(times):
            self.service.send_message(change)
        self.service.flush()

    def obey(self, words):
        commands = {
            "asked": lambda: str(self.asked),
            "started": lambda: "yes" if os.path.exists(os.path.join(self.folder.name, "started")) else "no",
            "start": self.start, "stop": self.stop, "come": self.come, "leave": self.leave,
            "flood": lambda: self.tell(1000),
            "pause": lambda: self.bus.send_signal(signal.SIGSTOP),
            "continue": lambda: self.bus.send_signal(signal.SIGCONT),
            "late": lambda: self.answer("active", self.unanswered),
        }  # fmt: skip
        if words[0] in commands:
            return commands[words[0]]() or "done"
        self.mode = words[-1]
        if (words[0] in ("idle", "active") or words[0].isdigit()) and self.service:
            self.tell()
        return "done"


def main():
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    stage, loop = Stage(*sys.argv[1:]), GLib.MainLoop()

    def read(*_):
        line = sys.stdin.buffer.raw.readline()
        if line:
            print(stage.obey(line.decode().split()), flush=True)
        else:
            loop.quit()
        return True

    GLib.io_add_watch(0, GLib.PRIORITY_DEFAULT, GLib.IO_IN | GLib.IO_HUP, read)
    loop.run()
    if stage.bus:
        stage.stop()


main()
