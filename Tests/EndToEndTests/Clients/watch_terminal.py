"""Runs `wakegate stats --watch` on a pseudo-terminal and says what is wrong with what it shows: a line of JSON a scene.

The only argument is a JSON object:
  program    the path of wakegate
  url        the admin listener
  topic      a topic with a worker named curl, and a push
  scenes     the names of the functions below that are to be played, in order
A line of standard input says that what the scene `gone` waits for has happened.
A line is {"scene": ..., "faults": [...]}: everything that should not be, and nothing when all is well.
"""

import json
import os
import re
import signal
import sys
import termios
import types

import terminals
from terminals import ENTER, LEAVE, say

settings = types.SimpleNamespace(**json.loads(sys.argv[1]))
COLOUR = re.compile(rb"\x1b\[3[0-7]")


class Terminal(terminals.Terminal):
    def __init__(self, **options):
        super().__init__([settings.program, "stats", "--watch", "--gateway", settings.url], **options)

    def shows_gateway(self):
        self.expect("the topic, the worker and the state", lambda: all(
            word in self.text for word in (settings.topic, "curl", "ready", "1 accepted", "q quits")))


def view():
    """It has a screen of its own, in colours, with bars that go on, and ends with a key."""
    terminal = Terminal()
    terminal.shows_gateway()
    if not terminal.written.startswith(ENTER):
        terminal.faults.append("it does not begin with a screen of its own")
    if not COLOUR.search(terminal.written):
        terminal.faults.append("it has no colours")
    terminal.expect("bars of several seconds", lambda: re.search("pushes .*[▁▂▃▄▅▆▇█]{3}", terminal.text))
    if termios.tcgetattr(terminal.terminal)[3] & termios.ECHO:
        terminal.faults.append("keys are shown")
    if "SLOTS BUSY" not in terminal.text or "1/4" not in terminal.text:
        terminal.faults.append(f"no slots: {terminal.text}")
    print(terminal.text, file=sys.stderr)
    os.write(terminal.terminal, b"q")
    # The program leaves its screen first and gives the settings back after that.
    terminal.expect("the end", lambda: LEAVE in terminal.written)
    terminal.expect("the terminal's settings are given back",
                    lambda: termios.tcgetattr(terminal.terminal)[3] == terminal.before[3])
    terminal.end()
    return terminal.faults


def resized():
    """It follows the terminal's size, and never writes beyond it."""
    terminal = Terminal()
    terminal.shows_gateway()
    terminal.follow_sizes()
    terminal.shows_gateway()
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.end()
    return terminal.faults


def interrupted():
    """Control-C ends it and gives the terminal back; Control-Z lends it out and takes it again."""
    terminal = Terminal()
    terminal.shows_gateway()
    terminal.written = b""
    os.write(terminal.terminal, b"\x1a")
    terminal.expect("the terminal is lent out", lambda: LEAVE in terminal.written)
    os.waitpid(terminal.pid, os.WUNTRACED)
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.expect("the screen is back", lambda: ENTER in terminal.written)
    terminal.shows_gateway()
    terminal.written = b""
    os.write(terminal.terminal, b"\x03")
    terminal.end()
    return terminal.faults


def plain():
    """NO_COLOR takes the colours away, and nothing else."""
    terminal = Terminal(NO_COLOR="1")
    terminal.shows_gateway()
    if b"\x1b[3" in terminal.written or b"\x1b[1m" in terminal.written:
        terminal.faults.append("there are colours")
    os.write(terminal.terminal, b"q")
    terminal.end()
    return terminal.faults


def gone():
    """The gateway is killed, and comes back: the view says so, and goes on."""
    terminal = Terminal()
    terminal.shows_gateway()
    say("alive", terminal.faults)
    sys.stdin.readline()
    terminal.expect("that it is gone", lambda: "gone" in terminal.text and "is asked again" in terminal.text)
    if settings.topic not in terminal.text:
        terminal.faults.append("what it had is gone as well")
    say("gone", terminal.faults)
    sys.stdin.readline()
    terminal.expect("that it is back", lambda: "ready" in terminal.text and "gone" not in terminal.text)
    os.write(terminal.terminal, b"q")
    terminal.end()
    return terminal.faults


for scene in settings.scenes:
    say(scene, globals()[scene]())
