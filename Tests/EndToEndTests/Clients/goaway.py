"""Writes what a connection hears until GOAWAY ends it: `settings`, `answer STATUS BODY`, `goaway CODE LAST-STREAM DATA`.

Arguments: HOST:PORT, CA file, and, if a client certificate is to be shown, its file with the key and a path. Then a
push to that path leaves in one piece with the end of the handshake.
"""

import sys

import h2.events

from session import BODY, Session, status_of

address, ca, certificate, path = (sys.argv[1:] + [None, None])[:4]
session = Session(address, ca, certificate, alpn=None, corks=bool(path))
if path:
    session.request("POST", path, body=BODY)
session.uncork()
status, body = "", b""
for event in session.events():
    match event:
        case h2.events.RemoteSettingsChanged():
            print("settings", flush=True)
        case h2.events.ResponseReceived():
            status = status_of(event)
        case h2.events.DataReceived():
            body += event.data
        case h2.events.StreamEnded():
            print(" ".join(["answer", status, body.decode()]).strip(), flush=True)
        case h2.events.ConnectionTerminated():
            data = (event.additional_data or b"").decode()
            print("goaway", int(event.error_code), event.last_stream_id, data, flush=True)
            sys.exit()
sys.exit("the gateway closed the connection without GOAWAY")
