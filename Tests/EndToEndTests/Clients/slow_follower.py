"""Follows what happens at a gateway over HTTP/2, reads nothing until a line comes on standard input, then everything.

Argument: HOST:PORT of the admin listener. Prints "following" when the stream is open; after that line, for each event
its name, and for `missed` the count behind it.
"""

import json
import sys

import h2.events

from session import Session, events_of

session = Session(sys.argv[1], window=0)
stream = session.request("GET", "/v1/events")
text = ""


def read_everything():
    if not sys.stdin.readline():
        sys.exit()
    session.h2.increment_flow_control_window(1 << 30)
    session.h2.increment_flow_control_window(1 << 30, stream)
    return True


for events in session.follow(read_everything):
    for event in events:
        if isinstance(event, h2.events.ResponseReceived):
            print("following", flush=True)
        elif isinstance(event, h2.events.DataReceived):
            text += event.data.decode()
    found, text = events_of(text)
    for name, data in found:
        count = json.loads(data).get("count") if name == "missed" else None
        print(name if count is None else f"missed {count}", flush=True)
