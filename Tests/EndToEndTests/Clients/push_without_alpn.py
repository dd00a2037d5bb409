"""Pushes once over TLS that offers no ALPN, and without :authority. Arguments: HOST:PORT, CA file, path, topic, body."""

import sys

import h2.events

from session import Session, status_of

address, ca, path, topic, body = sys.argv[1:]
# Without this option, h2 would refuse to send a head without :authority.
session = Session(address, ca, alpn=None, validate_outbound_headers=False)
assert session.socket.selected_alpn_protocol() is None
fields = {":method": "POST", ":scheme": "https", ":path": path, "host": address.rsplit(":", 1)[0], "apns-topic": topic}
fields |= {"apns-push-type": "background", "apns-priority": "5"}
stream = session.h2.get_next_available_stream_id()
session.h2.send_headers(stream, list(fields.items()))
# In two frames, the second empty, as some clients do.
session.h2.send_data(stream, body.encode())
session.h2.end_stream(stream)
session.flush()
head = None
for event in session.events():
    if isinstance(event, h2.events.ResponseReceived):
        head = event
    if isinstance(event, h2.events.StreamEnded):
        break
assert head, "the gateway closed the connection"
print("HTTP/2", status_of(head), dict(head.headers)["wakegate-disposition"])
