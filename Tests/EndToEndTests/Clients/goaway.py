"""Writes what a connection hears until GOAWAY ends it: `settings`, `answer STATUS BODY`, `goaway CODE LAST-STREAM DATA`.

Arguments: HOST:PORT, CA file, and, if a client certificate is to be shown, its file with the key and a path. Then a
push to that path leaves in one piece with the end of the handshake.
"""

import socket
import ssl
import sys

import h2.connection
import h2.events

address, ca, certificate, path = (sys.argv[1:] + ["", ""])[:4]
host, port = address.rsplit(":", 1)
context = ssl.create_default_context(cafile=ca)
if certificate:
    context.load_cert_chain(certificate)
received, to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
secure = context.wrap_bio(received, to_send, server_hostname=host)
session = h2.connection.H2Connection()
session.initiate_connection()
if path:
    stream = session.get_next_available_stream_id()
    fields = {":method": "POST", ":scheme": "https", ":authority": address, ":path": path}
    session.send_headers(stream, list(fields.items()))
    session.send_data(stream, b'{"aps":{"content-available":1}}', end_stream=True)


def events():
    """Reads until something has come that can be decrypted."""
    while True:
        try:
            return session.receive_data(secure.read(65536))
        except ssl.SSLWantReadError:
            arrived = connection.recv(65536)
            assert arrived, "the gateway closed the connection without GOAWAY"
            received.write(arrived)


with socket.create_connection((host, int(port)), timeout=60) as connection:
    is_shaken = False
    while not is_shaken:
        try:
            secure.do_handshake()
            is_shaken = True
            secure.write(session.data_to_send())
        except ssl.SSLWantReadError:
            pass
        connection.sendall(to_send.read())
        if not is_shaken:
            received.write(connection.recv(65536))
    has_ended = False
    status, body = "", b""
    while not has_ended:
        for event in events():
            if isinstance(event, h2.events.RemoteSettingsChanged):
                print("settings", flush=True)
            elif isinstance(event, h2.events.ResponseReceived):
                status = dict(event.headers)[b":status"].decode()
            elif isinstance(event, h2.events.DataReceived):
                body += event.data
            elif isinstance(event, h2.events.StreamEnded):
                print(" ".join(["answer", status, body.decode()]).strip(), flush=True)
            elif isinstance(event, h2.events.ConnectionTerminated):
                data = (event.additional_data or b"").decode()
                print("goaway", int(event.error_code), event.last_stream_id, data, flush=True)
                has_ended = True
        secure.write(session.data_to_send())
        if not has_ended:
            connection.sendall(to_send.read())
