"""Runs `wakegate stats --watch`, `task list --watch` and `task submit --wait` on pseudo-terminals and says what is wrong
with what they show: a line of JSON a scene.

The only argument is a JSON object:
  program    the path of wakegate
  url        the admin listener
  topic      for `stats`: a topic with a worker named curl, and a push
  device     for tasks: a device in use, for whose tasks com.example.tasks.* a worker runs a command that reports "part N"
             of four as its progress and then waits for the file "goN"
  folder     where these files are
  scenes     the names of the functions below that are to be played, in order
A line of standard input says that what the scene `gone` waits for has happened.
A line is {"scene": ..., "faults": [...]}: everything that should not be, and nothing when all is well.
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import types

import pyte

settings = types.SimpleNamespace(**json.loads(sys.argv[1]))
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
WRAPS, WRAPS_NOT = b"\x1b[?7h", b"\x1b[?7l"
EXPORT = "com.example.tasks.export"
COLOUR = re.compile(rb"\x1b\[3[0-7]")
EXPECT_SECONDS = 60


class Terminal:
    """A program on a terminal of its own, and what that shows."""

    def __init__(self, command, width=120, height=30, **environment):
        self.screen = pyte.Screen(width, height)
        self.stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.faults = []
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
            os.execve(command[0], command, {**os.environ, "NO_COLOR": "", "TERM": "xterm-256color", **environment})
        self.before = termios.tcgetattr(self.terminal)
        self.status = None

    @property
    def text(self):
        return "\n".join(self.screen.display)

    def require(self, holds, fault):
        if not holds:
            self.faults.append(fault)

    def type(self, keys):
        os.write(self.terminal, keys)

    def expect(self, what, holds):
        """Reads on until something holds."""
        deadline = time.monotonic() + EXPECT_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                self.faults.append(f"not within {EXPECT_SECONDS} s: {what}; the screen is:\n{self.text}")
                return
            if not self.read(deadline - time.monotonic()):
                if not holds():
                    self.faults.append(f"ended before: {what}; the screen is:\n{self.text}")
                return

    def read(self, seconds):
        if not select.select([self.terminal], [], [], max(0, seconds))[0]:
            return True
        try:
            bytes_read = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.written += bytes_read
        self.stream.feed(bytes_read)
        return bool(bytes_read)

    def resize(self, width, height):
        self.screen.resize(height, width)
        self.written = b""
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def follow_sizes(self):
        """Takes several sizes, and waits for a frame that fits each."""
        for width, height in ((60, 12), (34, 5), (200, 50)):
            self.resize(width, height)
            # A frame of the former size may have been on its way.
            self.expect(f"a frame in {width} x {height}", lambda: fits(shown(self), width, height))

    def end(self, status=0, gives_back=LEAVE):
        """Waits for the end, and checks that the terminal is restored."""
        self.expect("the terminal is given back", lambda: gives_back in self.written)
        self.require(gives_back != LEAVE or b"\x1b[?25h" in self.written, "the cursor stays hidden")
        while self.read(10):
            pass
        ended = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.require(ended == status, f"ended with {ended}")
        os.close(self.terminal)


def shown(terminal):
    """The lines of the last whole frame, without what is not seen."""
    frames = terminal.written.split(b"\x1b[H")
    whole = [frame for frame in frames[1:] if b"\x1b[J" in frame]
    text = whole[-1].split(b"\x1b[J")[0].decode() if whole else ""
    return [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in re.split("\r+\n", text)]


def fits(lines, width, height):
    return 1 < len(lines) <= height and max(map(len, lines)) <= width


def say(scene, faults):
    print(json.dumps({"scene": scene, "faults": faults}), flush=True)


class Watch(Terminal):
    def __init__(self, **options):
        super().__init__([settings.program, "stats", "--watch", "--gateway", settings.url], **options)
        self.shows_gateway()

    def shows_gateway(self):
        self.expect("the topic, the worker and the state", lambda: all(
            word in self.text for word in (settings.topic, "curl", "ready", "1 accepted", "q quits")))


def view():
    """The view uses the alternate screen, colours and moving bars, and ends with a key."""
    terminal = Watch()
    terminal.require(terminal.written.startswith(ENTER), "it does not begin with a screen of its own")
    terminal.require(COLOUR.search(terminal.written), "it has no colours")
    terminal.expect("bars of several seconds", lambda: re.search("pushes .*[▁▂▃▄▅▆▇█]{3}", terminal.text))
    terminal.require(not termios.tcgetattr(terminal.terminal)[3] & termios.ECHO, "keys are shown")
    terminal.require("SLOTS BUSY" in terminal.text and "1/4" in terminal.text, f"no slots: {terminal.text}")
    print(terminal.text, file=sys.stderr)
    terminal.type(b"q")
    # The program first leaves its screen, and then restores the settings.
    terminal.expect("the end", lambda: LEAVE in terminal.written)
    terminal.expect("the terminal's settings are given back",
                    lambda: termios.tcgetattr(terminal.terminal)[3] == terminal.before[3])
    terminal.end()
    return terminal.faults


def resized():
    """It follows the terminal's size, and never writes beyond it."""
    terminal = Watch()
    terminal.follow_sizes()
    terminal.shows_gateway()
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.end()
    return terminal.faults


def interrupted():
    """Control-C ends it and gives the terminal back; Control-Z lends it out and takes it again."""
    terminal = Watch()
    terminal.written = b""
    terminal.type(b"\x1a")
    terminal.expect("the terminal is lent out", lambda: LEAVE in terminal.written)
    os.waitpid(terminal.pid, os.WUNTRACED)
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.expect("the screen is back", lambda: ENTER in terminal.written)
    terminal.shows_gateway()
    terminal.written = b""
    terminal.type(b"\x03")
    terminal.end()
    return terminal.faults


def plain():
    """NO_COLOR takes the colours away, and nothing else."""
    terminal = Watch(NO_COLOR="1")
    terminal.require(not re.search(rb"\x1b\[(3|1m)", terminal.written), "there are colours")
    terminal.type(b"q")
    terminal.end()
    return terminal.faults


def gone():
    """The gateway is killed, and comes back: the view says so, and resumes."""
    terminal = Watch()
    say("alive", terminal.faults)
    sys.stdin.readline()
    terminal.expect("that it is gone", lambda: "gone" in terminal.text and "is asked again" in terminal.text)
    terminal.require(settings.topic in terminal.text, "the earlier content is gone as well")
    say("gone", terminal.faults)
    sys.stdin.readline()
    terminal.expect("that it is back", lambda: "ready" in terminal.text and "gone" not in terminal.text)
    terminal.type(b"q")
    terminal.end()
    return terminal.faults


def submit(*options, **terminal):
    command = ["task", "submit", settings.device, EXPORT, "--kind", "continued", "--title", "Export"]
    return Terminal([settings.program, *command, *options, "--gateway", settings.url], **terminal)


def go(number):
    pathlib.Path(settings.folder, f"go{number}").touch()


def watch():
    """It has a screen of its own, with a bar that grows, follows the terminal's size, and ends with Control-C."""
    command = [settings.program, "task", "submit", settings.device, EXPORT, "--kind", "continued", "--title", "Export"]
    subprocess.run([*command, "--gateway", settings.url], check=True, stdout=subprocess.DEVNULL)
    terminal = Terminal([settings.program, "task", "list", "--watch", "--gateway", settings.url])
    terminal.expect("a quarter", lambda: "25 %  1 of 4" in terminal.text and "Export  part 1" in terminal.text)
    quarter = terminal.text.count("█")
    terminal.require(terminal.written.startswith(ENTER), "it does not begin with a screen of its own")
    go(1)
    terminal.expect("a half", lambda: "50 %  2 of 4" in terminal.text and "part 2" in terminal.text)
    terminal.require(terminal.text.count("█") > quarter, f"the bar does not grow: {terminal.text}")
    terminal.follow_sizes()
    terminal.expect("the bar", lambda: "50 %" in terminal.text)
    print(terminal.text, file=sys.stderr)
    for number in (2, 3, 4):
        go(number)
    terminal.expect("the end", lambda: "no tasks" in terminal.text)
    terminal.written = b""
    terminal.type(b"\x03")
    terminal.end()
    return terminal.faults


def wait():
    """A bar on the line where it was started grows to its end, and the exit status is the task's."""
    terminal = submit("--wait")
    terminal.expect("a quarter", lambda: re.search("Export: part 1 +█.* 25 %  1 of 4", terminal.text))
    is_one_line = ENTER not in terminal.written and WRAPS_NOT in terminal.written
    terminal.require(is_one_line, "it does not draw in one line of the ordinary screen")
    go(1)
    terminal.expect("a half", lambda: "50 %" in terminal.text and "25 %" not in terminal.text)
    terminal.resize(44, 10)
    go(2)
    terminal.expect("three quarters in a narrow terminal", lambda: "75 %" in terminal.text)
    bars = sum("%" in line for line in terminal.screen.display)
    terminal.require(bars == 1, f"the bar is not one line: {terminal.text}")
    for number in (3, 4):
        go(number)
    terminal.expect("its end", lambda: "success" in terminal.text)
    terminal.require("100 %" in terminal.text, f"the bar does not come to its end: {terminal.text}")
    print(terminal.text, file=sys.stderr)
    terminal.end(gives_back=WRAPS)
    return terminal.faults


def cancel():
    """Control-C cancels the task, and the exit status says so."""
    terminal = submit("--wait", NO_COLOR="1")
    terminal.expect("a quarter", lambda: "25 %" in terminal.text)
    terminal.require(not re.search(rb"\x1b\[(3|1m)", terminal.written), "there are colours")
    terminal.type(b"\x03")
    terminal.expect("that it is cancelled", lambda: "is being cancelled" in terminal.text)
    terminal.expect("the end", lambda: "\ncancelled" in terminal.text)
    terminal.require(LEAVE not in terminal.written, "it gives back a screen that it did not take")
    terminal.end(status=5, gives_back=WRAPS)
    return terminal.faults


for scene in settings.scenes:
    say(scene, globals()[scene]())
