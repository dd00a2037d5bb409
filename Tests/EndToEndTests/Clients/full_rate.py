"""Pushes over one connection as fast as the gateway lets it, until standard input ends or the gateway ends it.

Arguments: HOST:PORT, CA file, topic, how many devices. Writes `running` after the first thousand answers, and at the
end one JSON object: `statuses`, how often each status came with its reason; `accepted`, the tokens of the devices whose
pushes were all answered 200 and that had one at least; `retriable`, whether every 503 had a retry-after; `processed`,
how many pushes without an answer GOAWAY did not exempt; and `goaway`, whether the gateway sent one.
"""

import collections
import json
import sys

import h2.events

from session import Session

address, ca, topic, device_count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
STREAMS = 200

session = Session(address, ca).go_on_after_goaway()
open_streams, bodies, heads = {}, {}, {}
statuses = collections.Counter()
accepted, refused = set(), set()
sent, last_processed, is_retriable, is_running, wants_more = 0, None, True, False, True


def push_more():
    global sent
    while wants_more and len(open_streams) < STREAMS:
        token = f"{sent % device_count:064x}"
        open_streams[session.push(token, topic)] = token
        sent += 1


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


def end():
    global wants_more
    wants_more = False


push_more()
for events in session.follow(end):
    for event in events:
        match event:
            case h2.events.ResponseReceived():
                heads[event.stream_id] = dict(event.headers)
            case h2.events.DataReceived():
                bodies[event.stream_id] = bodies.get(event.stream_id, b"") + event.data
            case h2.events.StreamEnded():
                answered(event.stream_id)
            case h2.events.StreamReset():
                statuses[f"reset {event.error_code}"] += 1
                open_streams.pop(event.stream_id, None)
            case h2.events.ConnectionTerminated():
                last_processed, wants_more = event.last_stream_id, False
                open_streams = {stream: token for stream, token in open_streams.items() if stream <= last_processed}
    if not is_running and statuses.total() >= 1000:
        is_running = True
        print("running", flush=True)
    if not wants_more and not open_streams:
        break
    push_more()
told = {"statuses": statuses, "accepted": sorted(accepted - refused), "retriable": is_retriable}
told |= {"processed": len(open_streams), "goaway": last_processed is not None}
print(json.dumps(told))
