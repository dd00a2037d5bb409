"""Pushes once over TLS that offers no ALPN, and without :authority. Arguments: HOST:PORT, CA file, path, topic, body."""

import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.events

address, ca, path, topic, body = sys.argv[1:]
host, port = address.rsplit(":", 1)
context = ssl.create_default_context(cafile=ca)
with context.wrap_socket(socket.create_connection((host, int(port)), timeout=10), server_hostname=host) as connection:
    assert connection.selected_alpn_protocol() is None
    # h2 would refuse to send a head without :authority unless told not to look.
    settings = h2.config.H2Configuration(header_encoding="utf-8", validate_outbound_headers=False)
    session = h2.connection.H2Connection(settings)
    session.initiate_connection()
    stream = session.get_next_available_stream_id()
    session.send_headers(
        stream,
        [
            (":method", "POST"),
            (":scheme", "https"),
            (":path", path),
            ("host", host),
            ("apns-topic", topic),
            ("apns-push-type", "background"),
            ("apns-priority", "5"),
        ],
    )
    # In two frames, the second empty, as some clients do.
    session.send_data(stream, body.encode())
    session.end_stream(stream)
    connection.sendall(session.data_to_send())
    head = None
    ended = False
    while not ended:
        received = connection.recv(65536)
        assert received, "the gateway closed the connection"
        for event in session.receive_data(received):
            if isinstance(event, h2.events.ResponseReceived):
                head = dict(event.headers)
            if isinstance(event, h2.events.StreamEnded):
                ended = True
        connection.sendall(session.data_to_send())
print("HTTP/2", head[":status"], head["wakegate-disposition"])
