"""Pushes on one connection and writes what came back, frame by frame, as one JSON list of texts.

Arguments: HOST:PORT, CA file, and a JSON object:
  topic    of every push
  batches  lists of device tokens: the pushes of one are sent together, when those of the one before have ended
  open     how many pushes are left without an end at last; 0 without it
  until    the text that must come last; any without it
  proof    the value of authorization, or a list with a value for each batch; none without it
A text is `settings N`, `STATUS STREAM REASON`, `reset STREAM CODE`, `goaway CODE LAST DATA` or `end`.
"""

import json
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

import unfinished_streams

unfinished_streams.go_on_after_goaway()
address, ca, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
host, port = address.rsplit(":", 1)
STREAMS = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS


class Connection:
    def __init__(self, connection):
        self.socket = connection
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.texts = []
        self.statuses = {}
        self.bodies = {}
        self.open = set()
        self.pongs = 0
        self.is_ended = False
        self.flush()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def push(self, device, proof):
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", "POST"), (":scheme", "https"), (":authority", host), (":path", f"/3/device/{device}")]
        head += [("apns-topic", settings["topic"]), ("apns-push-type", "background"), ("apns-priority", "5")]
        if proof:
            head.append(("authorization", proof))
        self.h2.send_headers(stream, head)
        self.h2.send_data(stream, b'{"aps":{"content-available":1}}', end_stream=True)
        self.open.add(stream)

    def read(self):
        """Takes what comes next; at the end of the connection every open stream has ended, too."""
        try:
            received = self.socket.recv(65536)
        except ConnectionResetError:
            received = b""
        if not received:
            self.texts.append("end")
            self.is_ended = True
            return
        for event in self.h2.receive_data(received):
            self.take(event)
        try:
            self.flush()
        except OSError:
            pass

    def take(self, event):
        match event:
            case h2.events.RemoteSettingsChanged() if STREAMS in event.changed_settings:
                self.texts.append(f"settings {event.changed_settings[STREAMS].new_value}")
            case h2.events.ResponseReceived():
                self.statuses[event.stream_id] = dict(event.headers)[":status"]
            case h2.events.DataReceived():
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self.bodies[event.stream_id] = json.loads(event.data)
            case h2.events.StreamEnded():
                reason = self.bodies.get(event.stream_id, {}).get("reason")
                words = [self.statuses[event.stream_id], str(event.stream_id)] + ([reason] if reason else [])
                self.texts.append(" ".join(words))
                self.open.discard(event.stream_id)
            case h2.events.StreamReset() if event.stream_id in self.open:
                self.texts.append(f"reset {event.stream_id} {h2.errors.ErrorCodes(event.error_code).name}")
                self.open.discard(event.stream_id)
            case h2.events.ConnectionTerminated():
                code = h2.errors.ErrorCodes(event.error_code).name
                data = (event.additional_data or b"").decode()
                self.texts.append(f"goaway {code} {event.last_stream_id} {data}")
                # Streams above the last one come to nothing.
                self.open = {stream for stream in self.open if stream <= event.last_stream_id}
            case h2.events.PingAckReceived():
                self.pongs += 1

    def settle(self, still_open):
        """Waits until all but so many pushes have ended, and for whatever was sent before that."""
        while not self.is_ended and len(self.open) > still_open:
            self.read()
        if self.is_ended:
            return
        wanted = self.pongs + 1
        try:
            self.h2.ping(b"12345678")
            self.flush()
        except OSError:
            pass
        while not self.is_ended and self.pongs < wanted:
            self.read()


context = ssl.create_default_context(cafile=ca)
context.set_alpn_protocols(["h2"])
with context.wrap_socket(socket.create_connection((host, int(port)), timeout=15), server_hostname=host) as tls:
    # A connection that ends without a word ends without TLS's word, too.
    tls.suppress_ragged_eofs = True
    connection = Connection(tls)
    connection.settle(0)
    for index, batch in enumerate(settings["batches"]):
        if connection.is_ended:
            break
        proof = settings.get("proof")
        for device in batch:
            connection.push(device, proof[index] if isinstance(proof, list) else proof)
        connection.flush()
        connection.settle(settings.get("open", 0) if index + 1 == len(settings["batches"]) else 0)
    while "until" in settings and not connection.is_ended and settings["until"] != connection.texts[-1]:
        connection.read()
print(json.dumps(connection.texts))
