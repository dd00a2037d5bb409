"""Pastes the blocks of a page into terminals, as its reader does, and compares what they print with what it shows.

Arguments: the page, a folder to work in, the folder of the built program, the checkout. Prints each fault, and ends
with 1 when there was one. It runs in a network, a mount and a process namespace of its own: every port is free there.

- A block `sh` is run as it stands. Its first line may be a comment such as `# second terminal`; without one it goes to
  the terminal of the block before. What still runs there is ended with Control-C first.
- A block `text` is what its terminal prints from then on, or the terminal that its first line names. `...` stands for
  anything; moments, identifiers, durations and white space are an example's. What has ended has printed nothing else.
- A block of any other language whose first line is a comment with a file's name alone is that file.
"""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

WAIT_SECONDS = 120
QUIET_SECONDS = 1
ORDINALS = ("first", "second", "third", "fourth")
# Commands that depend on time and may fail on a busy machine. They are tried again.
BY_THE_CLOCK, REPEATS = {"deploy/demo"}, 2
ENDED = re.compile(r"\x01(\d+)\r?\n")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Parts of the output that differ between runs, in the order in which they are replaced.
GENERAL = [
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z", "MOMENT"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "APNSID"),
    (r"\b[0-9a-f]{32}\b", "WAKE"),
    (r"\b1[0-9]{12}\b", "INSTANT"),
    (r"\bin( [0-9]+ (d|h|min|s)\b)+", "in SOME TIME"),
    (r"\b[0-9]+\.[0-9]{2,}\b", "NUMBER"),
]


def general(text):
    for pattern, word in GENERAL:
        text = re.sub(pattern, word, text)
    return re.sub(r"\s+", "", text)


def blocks(page):
    """The language, the first line if it is a comment, and the lines of each block, in the page's order."""
    found, inside = [], None
    for line in page.splitlines():
        if inside is None and line.startswith("```") and len(line) > 3:
            inside = (line[3:].strip(), [])
        elif inside is not None and line == "```":
            found.append(inside)
            inside = None
        elif inside is not None:
            inside[1].append(line)
    return found


def named(lines):
    """The terminal that a block's first line names; None where it names none."""
    match = lines and re.match(r"# (\w+) terminal\b", lines[0])
    return match[1] if match and match[1] in ORDINALS else None


class Terminal:
    def __init__(self, name, folder, environment):
        self.pasted = os.path.join(folder, f".{name}.sh")
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            # A shell always ignores the signals that are ignored when it starts, as in a background job of a script.
            # Signals that are blocked then stay blocked in all its children.
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGQUIT, signal.SIG_DFL)
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environment)
        self.output, self.block, self.is_busy = "", "", False
        self.write("stty -echo -onlcr noflsh; PS1= PS2= PROMPT_COMMAND=; set +H; printf '\\001%d\\n' 0\n")
        self.wait(lambda: ENDED.search(self.output))
        self.output = ""

    def write(self, text):
        os.write(self.file, text.encode())

    def read(self, seconds):
        if select.select([self.file], [], [], seconds)[0]:
            try:
                self.output += os.read(self.file, 65536).decode(errors="replace")
            except OSError:
                raise SystemExit(f"a terminal has ended: {self.output}")

    def wait(self, is_there):
        deadline = time.monotonic() + WAIT_SECONDS
        while not is_there() and time.monotonic() < deadline:
            self.read(0.1)
        return bool(is_there())

    def ended(self):
        """The status of the last block's last command; None while it runs."""
        match = ENDED.search(self.output)
        if match:
            self.is_busy = False
        return match and int(match[1])

    def rest(self):
        """Reads on until it has ended, or nothing comes for a while."""
        while self.is_busy and self.ended() is None and select.select([self.file], [], [], QUIET_SECONDS)[0]:
            self.read(0)

    def interrupt(self):
        self.rest()
        if self.is_busy and self.ended() is None:
            self.write("\x03")
            self.wait(lambda: self.ended() is not None)

    def paste(self, block):
        self.interrupt()
        self.output, self.block, self.is_busy = "", block, True
        # Use a file, so that a command in the block cannot read the following lines as its input.
        with open(self.pasted, "w", encoding="utf-8") as file:
            file.write(block + "\n")
        self.write(f". {self.pasted}\nprintf '\\001%d\\n' $?\n")

    def printed(self):
        """What the last block has printed: the line of its end is ours, and the reports of jobs are the shell's."""
        text = COLOUR.sub("", ENDED.split(self.output)[0].replace("\r", ""))
        return re.sub(r"(?m)^\[\d+\][ +-] .*\n|^\[\d+\] \d+\n|^\^C", "", text)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)


def pattern(lines):
    parts = general("\n".join(lines).replace("...", "\x02")).split("\x02")
    return ".*?".join(re.escape(part) for part in parts)


class Page:
    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.terminals, self.here, self.faults = {}, "first", []

    def terminal(self, name):
        if name not in self.terminals:
            self.terminals[name] = Terminal(name, self.folder, self.environment)
        return self.terminals[name]

    def paste(self, lines, is_shown):
        self.here = named(lines) or self.here
        # This page is already being tested. Running its own test would never end.
        if lines == ["deploy/test"]:
            return False
        terminal = self.terminal(self.here)
        terminal.paste("\n".join(lines))
        if not is_shown and not terminal.wait(lambda: terminal.ended() is not None):
            self.faults.append(f"{terminal.block}\n  did not end, and shows nothing: {terminal.output}")
        return True

    def compare(self, lines):
        name = named(lines)
        terminal = self.terminal(name or self.here)
        wanted = pattern(lines[1:] if name else lines)

        def is_shown():
            text = general(terminal.printed())
            if terminal.ended() is None:
                return re.match(wanted, text, re.DOTALL)
            return re.fullmatch(wanted, text, re.DOTALL)

        # After its end, no more output arrives. Before its end, a command may still print more or end.
        terminal.wait(lambda: is_shown() or terminal.ended() is not None)
        terminal.rest()
        for _ in range(REPEATS if terminal.block in BY_THE_CLOCK and not is_shown() else 0):
            terminal.paste(terminal.block)
            if terminal.wait(lambda: is_shown() or terminal.ended() is not None) and is_shown():
                break
        if not is_shown():
            shown = "\n".join(lines)
            self.faults.append(f"{terminal.block}\n  printed:\n{terminal.printed()}\n  and not:\n{shown}")
        status = terminal.ended()
        if status and not any(line.startswith("wakegate: ") for line in lines):
            self.faults.append(f"{terminal.block}\n  ended with {status}: {terminal.printed()}")

    def run(self, text):
        found = blocks(text)
        was_pasted = False
        for number, (language, lines) in enumerate(found):
            following = found[number + 1][0] if number + 1 < len(found) else ""
            if language == "sh":
                was_pasted = self.paste(lines, following == "text")
            elif language == "text":
                if was_pasted:
                    self.compare(lines)
            elif lines and (match := re.fullmatch(r"(?:#|//) ([\w.-]+\.\w+)", lines[0])):
                with open(os.path.join(self.folder, match[1]), "w", encoding="utf-8") as file:
                    file.write("\n".join(lines) + "\n")
        for terminal in self.terminals.values():
            terminal.ended()
            terminal.interrupt()
            terminal.close()


def main():
    path, folder, products, root = sys.argv[1:5]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    # A page's changes to the hosts file stay in this namespace.
    hosts = os.path.join(folder, ".hosts")
    shutil.copyfile("/etc/hosts", hosts)
    subprocess.run(["mount", "--bind", hosts, "/etc/hosts"], check=True)
    shims = os.path.join(folder, ".shims")
    os.makedirs(shims)
    swift = shutil.which("swift")
    building = f'case "$*" in *--show-bin-path*) echo "{products}" ;; build*) ;; *) exec {swift} "$@" ;; esac'
    for name, text in {
        # The user of this script already has all rights in these namespaces.
        "sudo": 'exec "$@"',
        # The products are already built: `deploy/build` and similar commands find them in the expected place.
        "swift": building,
        # As after `pip install` of the library. Some libraries need a separate environment.
        "python3": f'case "$1" in *aapns*) name=venv-aapns ;; *pyapns2*) name=venv-pyapns2 ;; *) name=venv ;; esac\n'
        'case "$1" in -m | news_worker.py) name=venv-python ;; esac\n'
        f'[ $name != venv-python ] || export PYTHONPATH="{root}/deploy/python"\n'
        '[ "$2" != pytest ] || set -- "$@" -p wakegate.pytest_plugin\n'
        f'exec "{root}/.build/$name/bin/python" "$@"',
    }.items():
        with open(os.path.join(shims, name), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(os.path.join(shims, name), 0o755)
    # The README explains how to add the program to PATH. The articles assume that it is there.
    extra = "" if os.path.basename(path) == "README.md" else f":{products}"
    environment = {
        "PATH": f"{shims}{extra}:{os.environ['PATH']}", "HOME": folder, "TERM": "dumb", "LANG": "C.UTF-8",
        "NO_PROXY": "*", "no_proxy": "*", "PYTHONWARNINGS": "ignore", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    page = Page(folder, environment)
    with open(path, encoding="utf-8") as file:
        page.run(file.read())
    for fault in page.faults:
        print(fault)
    return 1 if page.faults else 0


if __name__ == "__main__":
    sys.exit(main())
