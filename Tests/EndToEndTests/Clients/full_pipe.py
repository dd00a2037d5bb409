"""Runs a program whose standard error is a pipe that takes 4 KiB and that nobody reads.

Arguments: the program and its arguments. The pipe's other end is its descriptor 9.
"""

import fcntl
import os
import sys

reader, writer = os.pipe()
fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
os.dup2(reader, 9, inheritable=True)
os.dup2(writer, 2, inheritable=True)
os.execvp(sys.argv[1], sys.argv[1:])
