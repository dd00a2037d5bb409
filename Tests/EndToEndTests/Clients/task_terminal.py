"""Runs `wakegate task list --watch` and `wakegate task submit --wait` on pseudo-terminals and says what is wrong with
what they show: a line of JSON a scene.

The only argument is a JSON object:
  program    the path of wakegate
  url        the admin listener
  device     a device in use, for whose tasks com.example.tasks.* a worker runs a command that tells "part N" of four as
             its progress and then waits for the file "goN"
  folder     where these files are
  scenes     the names of the functions below that are to be played, in order
A line is {"scene": ..., "faults": [...]}: everything that should not be, and nothing when all is well.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import types

from terminals import ENTER, LEAVE, Terminal, say

settings = types.SimpleNamespace(**json.loads(sys.argv[1]))
WRAPS, WRAPS_NOT = b"\x1b[?7h", b"\x1b[?7l"
EXPORT = "com.example.tasks.export"


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
    if not terminal.written.startswith(ENTER):
        terminal.faults.append("it does not begin with a screen of its own")
    go(1)
    terminal.expect("a half", lambda: "50 %  2 of 4" in terminal.text and "part 2" in terminal.text)
    if terminal.text.count("█") <= quarter:
        terminal.faults.append(f"the bar does not grow: {terminal.text}")
    terminal.follow_sizes()
    terminal.expect("the bar", lambda: "50 %" in terminal.text)
    print(terminal.text, file=sys.stderr)
    for number in (2, 3, 4):
        go(number)
    terminal.expect("the end", lambda: "no tasks" in terminal.text)
    terminal.written = b""
    os.write(terminal.terminal, b"\x03")
    terminal.end()
    return terminal.faults


def wait():
    """A bar on the line where it was started grows to its end, and the exit status is the task's."""
    terminal = submit("--wait")
    terminal.expect("a quarter", lambda: re.search("Export: part 1 +█.* 25 %  1 of 4", terminal.text))
    if ENTER in terminal.written or WRAPS_NOT not in terminal.written:
        terminal.faults.append("it does not draw in one line of the ordinary screen")
    go(1)
    terminal.expect("a half", lambda: "50 %" in terminal.text and "25 %" not in terminal.text)
    terminal.resize(44, 10)
    go(2)
    terminal.expect("three quarters in a narrow terminal", lambda: "75 %" in terminal.text)
    if sum("%" in line for line in terminal.screen.display) != 1:
        terminal.faults.append(f"the bar is not one line: {terminal.text}")
    for number in (3, 4):
        go(number)
    terminal.expect("its end", lambda: "success" in terminal.text)
    if "100 %" not in terminal.text:
        terminal.faults.append(f"the bar does not come to its end: {terminal.text}")
    print(terminal.text, file=sys.stderr)
    terminal.end(gives_back=WRAPS)
    return terminal.faults


def cancel():
    """Control-C cancels the task, and the exit status says so."""
    terminal = submit("--wait", NO_COLOR="1")
    terminal.expect("a quarter", lambda: "25 %" in terminal.text)
    if b"\x1b[3" in terminal.written or b"\x1b[1m" in terminal.written:
        terminal.faults.append("there are colours")
    os.write(terminal.terminal, b"\x03")
    terminal.expect("that it is cancelled", lambda: "is being cancelled" in terminal.text)
    terminal.expect("the end", lambda: "\ncancelled" in terminal.text)
    if LEAVE in terminal.written:
        terminal.faults.append("it gives back a screen that it did not take")
    terminal.end(status=5, gives_back=WRAPS)
    return terminal.faults


for scene in settings.scenes:
    say(scene, globals()[scene]())
