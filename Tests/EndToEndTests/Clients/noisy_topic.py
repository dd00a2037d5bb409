"""Pushes to a noisy topic as fast as the gateway lets it, and now and then to a quiet one on another connection.

Arguments: HOST:PORT, CA file, how many quiet pushes. Writes one JSON object: `noisy`, all answers to noisy pushes;
`overtaken`, for each quiet push how many noisy ones that were sent after it were answered before it; and `statuses`,
how often each status came.
"""

import collections
import json
import selectors
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.events

address, ca, quiet_count = sys.argv[1], sys.argv[2], int(sys.argv[3])
host, port = address.rsplit(":", 1)
BODY = b'{"aps":{"content-available":1}}'
STREAMS = 900
WAIT_SECONDS = 60


class Connection:
    def __init__(self, topic):
        context = ssl.create_default_context(cafile=ca)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection((host, int(port)), timeout=WAIT_SECONDS)
        self.socket = context.wrap_socket(plain, server_hostname=host)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.topic = topic
        self.open = set()
        self.sent = 0
        self.flush()

    def flush(self):
        if waiting := self.h2.data_to_send():
            self.socket.sendall(waiting)

    def push(self):
        stream = self.h2.get_next_available_stream_id()
        self.sent += 1
        head = [(":method", "POST"), (":scheme", "https"), (":authority", host)]
        head += [(":path", f"/3/device/{self.sent % 1000:064x}" if self.topic == "noisy" else f"/3/device/{'5e' * 32}")]
        head += [("apns-topic", self.topic), ("apns-push-type", "background"), ("apns-priority", "5")]
        self.h2.send_headers(stream, head)
        self.h2.send_data(stream, BODY, end_stream=True)
        self.open.add(stream)
        return stream

    def answers(self):
        """Reads what is there: the streams that were answered, with their statuses."""
        received = self.socket.recv(65536)
        while self.socket.pending():
            received += self.socket.recv(65536)
        assert received, f"the gateway closed the connection of {self.topic}"
        answered = []
        for event in self.h2.receive_data(received):
            if isinstance(event, h2.events.ResponseReceived):
                answered.append((event.stream_id, dict(event.headers)[":status"]))
                self.open.discard(event.stream_id)
        return answered


noisy, quiet = Connection("noisy"), Connection("quiet")
selector = selectors.DefaultSelector()
for connection in (noisy, quiet):
    selector.register(connection.socket, selectors.EVENT_READ, connection)
statuses = collections.Counter()
overtaken = []
answered_count = 0
# The number of the first noisy stream that is sent after the quiet push under way, and how many of those have answers.
first_after, answered_after = None, 0
while len(overtaken) < quiet_count:
    while len(noisy.open) < STREAMS:
        noisy.push()
    noisy.flush()
    # The next one waits until the noise is there again.
    if not quiet.open and answered_count >= STREAMS * (len(overtaken) + 1):
        first_after, answered_after = noisy.h2.get_next_available_stream_id(), 0
        quiet.push()
        quiet.flush()
    ready = selector.select(WAIT_SECONDS)
    assert ready, "nobody was answered in time"
    # Whoever was answered in one look was answered at once, as far as can be told.
    for key, _ in sorted(ready, key=lambda each: each[0].data is noisy):
        for stream, status in key.data.answers():
            statuses[status] += 1
            if key.data is quiet:
                overtaken.append(answered_after)
                first_after = None
            else:
                answered_count += 1
                answered_after += first_after is not None and stream >= first_after
        key.data.flush()
print(json.dumps({"noisy": answered_count, "overtaken": overtaken, "statuses": statuses}))
