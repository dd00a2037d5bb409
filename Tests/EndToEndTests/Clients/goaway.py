"""Connects, asks nothing, and writes what the GOAWAY says that ends the connection. Arguments: HOST:PORT, CA file.

Prints `connected` once the gateway has spoken, and then a line with the error code and the debug data of the GOAWAY.
"""

import socket
import ssl
import sys

import h2.connection
import h2.events

address, ca = sys.argv[1:]
host, port = address.rsplit(":", 1)
context = ssl.create_default_context(cafile=ca)
with context.wrap_socket(socket.create_connection((host, int(port)), timeout=15), server_hostname=host) as connection:
    session = h2.connection.H2Connection()
    session.initiate_connection()
    connection.sendall(session.data_to_send())
    ended = None
    while ended is None:
        received = connection.recv(65536)
        assert received, "the gateway closed the connection without GOAWAY"
        for event in session.receive_data(received):
            if isinstance(event, h2.events.RemoteSettingsChanged):
                print("connected", flush=True)
            if isinstance(event, h2.events.ConnectionTerminated):
                ended = event
        connection.sendall(session.data_to_send())
print(int(ended.error_code), ended.additional_data.decode())
