"""Pushes over one connection as fast as the gateway lets it, until standard input ends or the gateway ends it.

Arguments: HOST:PORT, CA file, topic, how many devices. Writes `running` after the first thousand answers, and at the
end one JSON object: `statuses`, how often each status came with its reason; `accepted`, the tokens of the devices whose
pushes were all answered 200 and that had one at least; `retriable`, whether every 503 had a retry-after; `processed`,
how many pushes without an answer GOAWAY did not exempt; `exempt`, how many it did, which may be sent again; and
`goaway`, whether the gateway sent one.
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

import unfinished_streams

unfinished_streams.go_on_after_goaway()
address, ca, topic, device_count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
host, port = address.rsplit(":", 1)
BODY = b'{"aps":{"content-available":1}}'
STREAMS = 200
WAIT_SECONDS = 60

context = ssl.create_default_context(cafile=ca)
context.set_alpn_protocols(["h2"])
connection = context.wrap_socket(socket.create_connection((host, int(port)), WAIT_SECONDS), server_hostname=host)
session = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
session.initiate_connection()
connection.sendall(session.data_to_send())

open_streams, bodies, heads = {}, {}, {}
statuses = collections.Counter()
accepted, refused = set(), set()
sent, last_processed, is_retriable, is_running, wants_more, exempt = 0, None, True, False, True, 0


def push():
    global sent
    stream = session.get_next_available_stream_id()
    token = f"{sent % device_count:064x}"
    sent += 1
    head = [(":method", "POST"), (":scheme", "https"), (":authority", host), (":path", f"/3/device/{token}")]
    head += [("apns-topic", topic), ("apns-push-type", "background"), ("apns-priority", "5")]
    session.send_headers(stream, head)
    session.send_data(stream, BODY, end_stream=True)
    open_streams[stream] = token


def answered(stream):
    global is_retriable
    token, head = open_streams.pop(stream), heads.pop(stream)
    body = bodies.pop(stream, b"")
    status = head[":status"]
    reason = json.loads(body)["reason"] if body else ""
    statuses[f"{status} {reason}".strip()] += 1
    (accepted if status == "200" else refused).add(token)
    if status == "503" and "retry-after" not in head:
        is_retriable = False


selector = selectors.DefaultSelector()
selector.register(connection, selectors.EVENT_READ)
selector.register(sys.stdin, selectors.EVENT_READ)
while wants_more or open_streams:
    while wants_more and len(open_streams) < STREAMS:
        push()
    waiting = session.data_to_send()
    try:
        connection.sendall(waiting)
    except OSError:
        break
    if not connection.pending():
        ready = selector.select(WAIT_SECONDS)
        assert ready, "nobody was answered in time"
        if any(key.fileobj is sys.stdin for key, _ in ready):
            selector.unregister(sys.stdin)
            wants_more = False
            continue
    try:
        received = connection.recv(65536)
    except OSError:
        break
    if not received:
        break
    for event in session.receive_data(received):
        if isinstance(event, h2.events.ResponseReceived):
            heads[event.stream_id] = dict(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            bodies[event.stream_id] = bodies.get(event.stream_id, b"") + event.data
        elif isinstance(event, h2.events.StreamEnded):
            answered(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            statuses[f"reset {event.error_code}"] += 1
            open_streams.pop(event.stream_id, None)
        elif isinstance(event, h2.events.ConnectionTerminated):
            last_processed, wants_more = event.last_stream_id, False
            for stream in [stream for stream in open_streams if stream > last_processed]:
                del open_streams[stream]
                exempt += 1
    if not is_running and statuses.total() >= 1000:
        is_running = True
        print("running", flush=True)
print(
    json.dumps(
        {
            "statuses": statuses,
            "accepted": sorted(accepted - refused),
            "retriable": is_retriable,
            "processed": len(open_streams),
            "exempt": exempt,
            "goaway": last_processed is not None,
        }
    )
)
