"""Asks every listener for a path that is not there, with all kinds of hosts, over HTTP/2: a line an answer.

Arguments: the admin listener, the plain one, the edge, and the file of its certificate authority.
A line is: listener, case, status.
"""

import sys

import h2.events

from session import Session, status_of

# :authority, then host; None for a field that is not sent. The port is the listener's.
CASES = {
    "same": ("localhost:{port}", "localhost:{port}"),
    "port": ("localhost:{port}", "localhost"),
    "case": ("localhost:{port}", "LOCALHOST.:1"),
    "host-only": (None, "localhost:{port}"),
    "other": ("localhost:{port}", "attacker.example"),
    "other-authority": ("attacker.example", "localhost"),
    "empty": ("", "localhost"),
}


def ask(address, ca, authority, host):
    # The library must not correct invalid fields.
    session = Session(address, ca, validate_outbound_headers=False, normalize_outbound_headers=False)
    port = address.rpartition(":")[2]
    fields = [(":method", "GET"), (":scheme", session.scheme), (":path", "/v1/nothing")]
    if authority is not None:
        fields.append((":authority", authority.format(port=port)))
    fields.append(("host", host.format(port=port)))
    session.h2.send_headers(1, fields, end_stream=True)
    session.flush()
    for event in session.events():
        if isinstance(event, h2.events.ResponseReceived):
            return status_of(event)
        if isinstance(event, h2.events.StreamReset):
            return f"reset-{event.error_code}"
    return "ended"


for listener, address, ca in zip(("admin", "plain", "edge"), sys.argv[1:4], (None, None, sys.argv[4])):
    for case, (authority, host) in CASES.items():
        print(listener, case, ask(address, ca, authority, host))
