"""One HTTP/2 connection of the clients here, on a socket that blocks."""

import selectors
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.settings
from h2.connection import ConnectionInputs, ConnectionState, H2ConnectionStateMachine

BODY = b'{"aps":{"content-available":1}}'
WINDOW = h2.settings.SettingCodes.INITIAL_WINDOW_SIZE


class Session:
    """`alpn` is offered, if any, over TLS, which needs the file of an authority. `window` is how many bytes each stream
    of the gateway's may send. With `corks`, nothing but whole segments leaves until `uncork`, or for 200 ms: what is
    sent at once shares a segment with the end of the handshake. `options` are those of the library h2."""

    # The class that implements HTTP/2.
    kind = h2.connection.H2Connection

    def __init__(self, address, ca=None, certificate=None, alpn="h2", window=None, corks=False, **options):
        host, port = address.rsplit(":", 1)
        self.authority, self.scheme = address, "https" if ca else "http"
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, corks)
        if ca:
            context = ssl.create_default_context(cafile=ca)
            if alpn:
                context.set_alpn_protocols([alpn])
            if certificate:
                context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
        self.h2 = self.kind(h2.config.H2Configuration(**{"header_encoding": "utf-8", **options}))
        self.h2.initiate_connection()
        if window is not None:
            self.h2.update_settings({WINDOW: window})
        self.flush()

    def go_on_after_goaway(self):
        """Keeps the streams that a GOAWAY leaves open (RFC 9113 §6.8), whose frames the library refuses."""
        is_open = ConnectionState.CLIENT_OPEN
        H2ConnectionStateMachine._transitions[is_open, ConnectionInputs.RECV_GOAWAY] = (None, is_open)
        return self

    def flush(self):
        if waiting := self.h2.data_to_send():
            self.socket.sendall(waiting)

    def uncork(self):
        self.flush()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)

    def open(self, method, path, fields=(), ends=True):
        """Sends the head of a request; its stream."""
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", self.scheme), (":authority", self.authority), (":path", path), *fields]
        self.h2.send_headers(stream, head, end_stream=ends)
        return stream

    def request(self, method, path, fields=(), body=None):
        stream = self.open(method, path, fields, ends=body is None)
        if body is not None:
            self.h2.send_data(stream, body, end_stream=True)
        return stream

    def push(self, device, topic, *fields, body=BODY):
        """Sends a push, or its head alone without a body; its stream."""
        head = [("apns-topic", topic), ("apns-push-type", "background"), ("apns-priority", "5"), *fields]
        if body is None:
            return self.open("POST", f"/3/device/{device}", head, ends=False)
        return self.request("POST", f"/3/device/{device}", head, body)

    def receive(self):
        """Reads once, and returns the events of the library; None at the end of the connection."""
        try:
            received = self.socket.recv(65536)
        except TimeoutError:
            raise
        except OSError:
            return None
        return self.h2.receive_data(received) if received else None

    def events(self):
        """Everything that comes, as the library tells it, to the end of the connection."""
        while (events := self.receive()) is not None:
            yield from events
            try:
                self.flush()
            except OSError:
                # Data that arrived before the end can still be read.
                pass

    def follow(self, on_input):
        """The same; `on_input` is called when there is something to read on standard input, until it says that it wants
        no more."""
        selector = selectors.DefaultSelector()
        selector.register(self.socket, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while True:
            try:
                self.flush()
            except OSError:
                return
            if self.scheme == "http" or not self.socket.pending():
                ready = selector.select(60)
                assert ready, "nothing came in time"
                if any(key.fileobj is sys.stdin for key, _ in ready):
                    if not on_input():
                        selector.unregister(sys.stdin)
                    continue
            if (events := self.receive()) is None:
                return
            yield events


def status_of(event):
    return dict(event.headers)[":status"]


def events_of(text):
    """The whole server-sent events of a text, as names and data, and the rest of the text."""
    *blocks, rest = text.split("\n\n")
    found = []
    for block in blocks:
        lines = [line.partition(": ")[::2] for line in block.split("\n") if not line.startswith(":")]
        if name := dict(lines).get("event"):
            found.append((name, "\n".join(value for field, value in lines if field == "data")))
    return found, rest
