"""A worker that holds its wakes, and answers half of them once standard input ends.

Arguments: HOST:PORT, CA file, topic, how many slots. Writes `holding` when all its slots are taken, and when the gateway
has ended the connection one JSON object: `completed`, the devices whose wakes were answered with 204.
"""

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
address, ca, topic, slots = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
host, port = address.rsplit(":", 1)
WAIT_SECONDS = 60
RESULT = b'{"result":"newData"}'

context = ssl.create_default_context(cafile=ca)
context.set_alpn_protocols(["h2"])
connection = context.wrap_socket(socket.create_connection((host, int(port)), WAIT_SECONDS), server_hostname=host)
session = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
session.initiate_connection()


def request(method, path, body=None):
    stream = session.get_next_available_stream_id()
    head = [(":method", method), (":scheme", "https"), (":authority", host), (":path", path)]
    session.send_headers(stream, head, end_stream=body is None)
    if body is not None:
        session.send_data(stream, body, end_stream=True)
    return stream


wakes_stream = request("GET", f"/v1/topics/{topic}/wakes?slots={slots}")
text, held, asked, completed = "", [], {}, []
is_holding = False
selector = selectors.DefaultSelector()
selector.register(connection, selectors.EVENT_READ)
selector.register(sys.stdin, selectors.EVENT_READ)
while True:
    try:
        connection.sendall(session.data_to_send())
    except OSError:
        break
    if not connection.pending():
        ready = selector.select(WAIT_SECONDS)
        assert ready, "nothing came in time"
        if any(key.fileobj is sys.stdin for key, _ in ready):
            selector.unregister(sys.stdin)
            for wake in held[: slots // 2]:
                asked[request("POST", f"/v1/wakes/{wake['wake']}", RESULT)] = wake["device"]
            continue
    try:
        received = connection.recv(65536)
    except OSError:
        break
    if not received:
        break
    for event in session.receive_data(received):
        if isinstance(event, h2.events.DataReceived) and event.stream_id == wakes_stream:
            session.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            text += event.data.decode()
            *whole, text = text.split("\n\n")
            for block in whole:
                lines = [line[len("data: ") :] for line in block.split("\n") if line.startswith("data: ")]
                if "event: wake" in block:
                    held.append(json.loads("\n".join(lines)))
        elif isinstance(event, h2.events.ResponseReceived) and event.stream_id in asked:
            if dict(event.headers)[":status"] == "204":
                completed.append(asked[event.stream_id])
    if not is_holding and len(held) == slots:
        is_holding = True
        print("holding", flush=True)
print(json.dumps({"completed": completed}))
