"""Pushes twice on one connection, the second time with its body held back for as long as the stream's window is too small.

Arguments: HOST:PORT, CA file, topic, and `wait` or `give-up`, which resets the second push while it is held back.
A line is an event:
  STATUS   of an answer
  window N the bytes that the second push may send when its head has left
  held N   so many bytes of it wait, and the gateway has answered a PING since
  open     the window is large enough
"""

import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

BODY = b'{"aps":{"content-available":1}}'
address, ca, topic, end = sys.argv[1:]
host, port = address.rsplit(":", 1)
context = ssl.create_default_context(cafile=ca)
context.set_alpn_protocols(["h2"])
with context.wrap_socket(socket.create_connection((host, int(port)), timeout=30), server_hostname=host) as tls:
    session = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    session.initiate_connection()

    def flush():
        tls.sendall(session.data_to_send())

    def receive(wanted):
        """Takes what comes until one event of this kind has; the gateway may go away behind it."""
        while True:
            received = tls.recv(65536)
            assert received, "the gateway closed the connection"
            events = session.receive_data(received)
            flush()
            for event in events:
                if isinstance(event, wanted):
                    return event
                assert not isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)), event

    def begin():
        stream = session.get_next_available_stream_id()
        head = [(":method", "POST"), (":scheme", "https"), (":authority", host), (":path", f"/3/device/{stream:064x}")]
        head += [("apns-topic", topic), ("apns-push-type", "background"), ("apns-priority", "5")]
        session.send_headers(stream, head)
        return stream

    def show_answer():
        print(dict(receive(h2.events.ResponseReceived).headers)[":status"], flush=True)

    session.send_data(begin(), BODY, end_stream=True)
    flush()
    show_answer()
    stalled = begin()
    flush()
    window = session.local_flow_control_window(stalled)
    print("window", window, flush=True)
    session.send_data(stalled, BODY[:window])
    rest = BODY[window:]
    try:
        session.send_data(stalled, rest, end_stream=True)
        sys.exit("nothing was held back")
    except h2.exceptions.FlowControlError:
        session.ping(b"12345678")
        flush()
        receive(h2.events.PingAckReceived)
        print("held", len(rest), flush=True)
    if end == "give-up":
        session.reset_stream(stalled, h2.errors.ErrorCodes.CANCEL)
        flush()
        sys.exit()
    while session.local_flow_control_window(stalled) < len(rest):
        receive(h2.events.RemoteSettingsChanged)
    print("open", flush=True)
    session.send_data(stalled, rest, end_stream=True)
    flush()
    show_answer()
