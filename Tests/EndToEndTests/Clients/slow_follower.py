"""Follows what happens at a gateway over HTTP/2, reads nothing until a line comes on standard input, then everything.

Argument: HOST:PORT of the admin listener. Prints "following" when the stream is open; after that line, for each event
its name, and for `missed` the count behind it.
"""

import json
import select
import socket
import sys

import h2.config
import h2.connection
import h2.events
import h2.settings

host, port = sys.argv[1].rsplit(":", 1)
connection = socket.create_connection((host, int(port)))
session = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
session.initiate_connection()
session.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
stream = session.get_next_available_stream_id()
fields = [(":method", "GET"), (":path", "/v1/events"), (":scheme", "http"), (":authority", sys.argv[1])]
session.send_headers(stream, fields, end_stream=True)
connection.sendall(session.data_to_send())
text = ""

while True:
    ready = select.select([connection, sys.stdin], [], [])[0]
    if sys.stdin in ready:
        if not sys.stdin.readline():
            break
        session.increment_flow_control_window(1 << 30)
        session.increment_flow_control_window(1 << 30, stream)
        connection.sendall(session.data_to_send())
    if connection not in ready:
        continue
    received = connection.recv(65536)
    if not received:
        break
    for event in session.receive_data(received):
        if isinstance(event, h2.events.ResponseReceived):
            print("following", flush=True)
        elif isinstance(event, h2.events.DataReceived):
            text += event.data.decode()
    connection.sendall(session.data_to_send())
    *whole, text = text.split("\n\n")
    for block in whole:
        parts = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if "event" in parts:
            count = json.loads(parts["data"]).get("count") if parts["event"] == "missed" else None
            print(parts["event"] if count is None else f"missed {count}", flush=True)
