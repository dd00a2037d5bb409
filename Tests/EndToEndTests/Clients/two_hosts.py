"""Asks every listener for a path that is not there, with all kinds of hosts, over HTTP/2: a line an answer.

Arguments: the admin listener, the plain one, the edge, and the file of its certificate authority.
A line is: listener, case, status.
"""

import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.events

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


def ask(listener, address, context, authority, host):
    name, port = address.rsplit(":", 1)
    channel = socket.create_connection((name, int(port)), timeout=20)
    if context:
        channel = context.wrap_socket(channel, server_hostname=name)
    # The library must not mend what is wrong.
    config = h2.config.H2Configuration(validate_outbound_headers=False, normalize_outbound_headers=False)
    connection = h2.connection.H2Connection(config)
    connection.initiate_connection()
    fields = [(":method", "GET"), (":scheme", "https" if context else "http"), (":path", "/v1/nothing")]
    if authority is not None:
        fields.append((":authority", authority.format(port=port)))
    fields.append(("host", host.format(port=port)))
    connection.send_headers(1, fields, end_stream=True)
    channel.sendall(connection.data_to_send())
    while data := channel.recv(65536):
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                return dict(event.headers)[b":status"].decode()
            if isinstance(event, h2.events.StreamReset):
                return f"reset-{event.error_code}"
    return "ended"


trusting = ssl.create_default_context(cafile=sys.argv[4])
trusting.set_alpn_protocols(["h2"])
for listener, address, context in zip(("admin", "plain", "edge"), sys.argv[1:4], (None, None, trusting)):
    for case, (authority, host) in CASES.items():
        print(listener, case, ask(listener, address, context, authority, host))
