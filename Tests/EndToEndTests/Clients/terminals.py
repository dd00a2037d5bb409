"""Programs on pseudo-terminals of their own, and what those show."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import termios
import time

import pyte

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


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

    def expect(self, what, holds, seconds=30):
        """Reads on until something holds."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                self.faults.append(f"not within {seconds} s: {what}; the screen is:\n{self.text}")
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
        """Takes several sizes, and notes where what is shown does not fit."""
        for width, height in ((60, 12), (34, 5), (200, 50)):
            self.resize(width, height)
            self.expect(f"a frame in {width} x {height}", lambda: len(shown(self)) > 1)
            lines = shown(self)
            if len(lines) > height or any(len(line) > width for line in lines):
                widest = max(map(len, lines))
                self.faults.append(f"{len(lines)} lines, {widest} wide, in {width} x {height}: {lines}")

    def end(self, status=0, gives_back=LEAVE):
        """Waits for the end, and for the terminal to be as it was."""
        try:
            after = termios.tcgetattr(self.terminal)
        except termios.error:
            after = None
        self.expect("the terminal is given back", lambda: gives_back in self.written)
        if gives_back == LEAVE and b"\x1b[?25h" not in self.written:
            self.faults.append("the cursor stays hidden")
        while self.read(10):
            pass
        ended = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if ended != status:
            self.faults.append(f"ended with {ended}")
        os.close(self.terminal)
        return after


def shown(terminal):
    """The lines of the last whole frame, without what is not seen."""
    frames = terminal.written.split(b"\x1b[H")
    whole = [frame for frame in frames[1:] if b"\x1b[J" in frame]
    text = whole[-1].split(b"\x1b[J")[0].decode() if whole else ""
    return [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in re.split("\r+\n", text)]


def say(scene, faults):
    print(json.dumps({"scene": scene, "faults": faults}), flush=True)
