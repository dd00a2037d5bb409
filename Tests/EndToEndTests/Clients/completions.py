#!/usr/bin/env python3
"""Types command lines into a real shell and presses tab: completions.py SHELL PROGRAM LINE...

What each line has become, word by word, is one line of output. The shell runs on a terminal of its own with the
completions that PROGRAM writes for it, which find PROGRAM by its name, and with a function of that name that shows its
arguments. The function `wg` has the same completions.
"""

import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

# The options with which a shell reads no configuration.
OPTIONS = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}
SHOW = "wakegate() {{ printf '<%s>\\n' \"$@\"; echo '=EN''D='; }}; wg() {{ wakegate \"$@\"; }}; "
PREPARATIONS = {
    "bash": "bind 'set enable-bracketed-paste off' 2>/dev/null; source {file}; " + SHOW + "complete -F _wakegate wg",
    "zsh": "unset zle_bracketed_paste; fpath=({folder} $fpath); autoload -U compinit; compinit -u -D; "
    + SHOW
    + "compdef wg=wakegate",
    "fish": "source {file}; function wakegate; printf '<%s>\\n' $argv; echo '=EN''D='; end; "
    "function wg --wraps wakegate; wakegate $argv; end",
}
SECONDS_MAX = 60


def read_until(terminal, end):
    """Reads the shell's output up to `end`, and answers fish's request for the cursor position."""
    text, deadline = "", time.monotonic() + SECONDS_MAX
    while end not in text:
        if not select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
            raise SystemExit(f"no {end} within {SECONDS_MAX} s; the terminal shows {text!r}")
        part = os.read(terminal, 65536).decode(errors="replace")
        if "\x1b[6n" in part:
            os.write(terminal, b"\x1b[1;1R")
        if "\x1b[c" in part or "\x1b[0c" in part:
            os.write(terminal, b"\x1b[?6c")
        text += part
    return text


shell, program, lines = sys.argv[1], sys.argv[2], sys.argv[3:]
with tempfile.TemporaryDirectory() as folder:
    file = f"{folder}/_wakegate"
    with open(file, "wb") as output:
        subprocess.run([program, "completion", shell], stdout=output, check=True)
    child, terminal = pty.fork()
    if child == 0:
        path = f"{os.path.dirname(program)}:{os.environ['PATH']}"
        os.environ.update(HOME=folder, TERM="xterm", COLUMNS="200", PATH=path)
        os.execvp(shell, [shell, *OPTIONS[shell], "-i"])
    os.write(terminal, f"{PREPARATIONS[shell].format(file=file, folder=folder)}\nwakegate ready\n".encode())
    read_until(terminal, "=END=")
    for line in lines:
        os.write(terminal, f"{line}\t\n".encode())
        shown = read_until(terminal, "=END=")
        print(" ".join(re.findall(r"<([^<>]*)>\s*$", shown, re.MULTILINE)), flush=True)
    os.close(terminal)
    os.waitpid(child, 0)
