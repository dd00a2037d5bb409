"""A TCP connection to HOST:PORT, the argument. Each line of standard input is a string in JSON whose bytes are sent;
what comes is written as it is, until the other side ends the connection."""

import json
import os
import socket
import sys
import threading

host, port = sys.argv[1].rsplit(":", 1)
connection = socket.create_connection((host, int(port)))


def show():
    while data := connection.recv(65536):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    os._exit(0)


threading.Thread(target=show, daemon=True).start()
for line in sys.stdin:
    connection.sendall(json.loads(line).encode())
threading.Event().wait()
