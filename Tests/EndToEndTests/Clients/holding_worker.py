"""A worker that holds its wakes, and answers half of them once standard input ends.

Arguments: HOST:PORT, CA file, topic, how many slots. Writes `holding` when all its slots are taken, `answered` when
half of its wakes were answered with 204, and when the gateway has ended the connection one JSON object: `completed`,
the devices whose wakes were answered with 204.
"""

import json
import sys

import h2.events

from session import Session, events_of, status_of

address, ca, topic, slots = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
session = Session(address, ca).go_on_after_goaway()
wakes_stream = session.request("GET", f"/v1/topics/{topic}/wakes?slots={slots}")
text, held, asked, completed = "", [], {}, []
is_holding = False


def answer_half():
    for wake in held[: slots // 2]:
        stream = session.request("POST", f"/v1/wakes/{wake['wake']}", body=b'{"result":"newData"}')
        asked[stream] = wake["device"]


for events in session.follow(answer_half):
    for event in events:
        if isinstance(event, h2.events.DataReceived) and event.stream_id == wakes_stream:
            session.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            found, text = events_of(text + event.data.decode())
            held += [json.loads(data) for name, data in found if name == "wake"]
        elif isinstance(event, h2.events.ResponseReceived) and event.stream_id in asked:
            if status_of(event) == "204":
                completed.append(asked[event.stream_id])
                if len(completed) == slots // 2:
                    print("answered", flush=True)
    if not is_holding and len(held) == slots:
        is_holding = True
        print("holding", flush=True)
print(json.dumps({"completed": completed}))
