"""Lets schemathesis reach wakes and streams, whose identifiers no answer of the document has: they come on streams.

A stream of a worker is subscribed to, and devices are pushed to as wakes are needed. Every other well-formed identifier
of a wake, and of a stream, that was made up is replaced by one that is there. WAKEGATE_PLAIN is HOST:PORT of the plain
listener; the gateway registers devices with their first push. The operation of each request that reached one is a line
of the file WAKEGATE_REACHED.
"""

import itertools
import json
import os
import re
import threading

import httpx
import schemathesis

TOPIC = "com.example.schemathesis"
WAIT_SECONDS = 60
OF_A_WAKE = {"reportResult", "extendWake", "releaseWake", "reportProgress"}

address = os.environ.get("WAKEGATE_PLAIN")
# As many connections as there are streams.
limits = httpx.Limits(max_connections=None)
client = httpx.Client(base_url=f"http://{address}", timeout=WAIT_SECONDS, limits=limits, trust_env=False)
numbers = itertools.count(1)
calls = itertools.count()
lock = threading.Lock()


class Stream:
    """A subscription; what its wakes are called is read as they come."""

    def __init__(self, topic):
        self.answer = client.send(client.build_request("GET", f"/v1/topics/{topic}/wakes?slots=4096"), stream=True)
        assert self.answer.status_code == 200, self.answer.read()
        self.id = self.answer.headers["wakegate-stream"]
        self.lines = self.answer.iter_lines()

    def wake(self):
        """The next wake's identifier."""
        for line in self.lines:
            if line.startswith("data:") and '"wake"' in line and '"payload"' in line:
                return json.loads(line[len("data:"):])["wake"]
        raise EOFError("the stream has ended")


# The stream whose wakes are used, and the streams for draining. Each is kept open until it ends.
worker = None
drained = []
# The stream whose wake is released. A stream that has released three wakes gets no more.
giver = None


def push(topic=TOPIC):
    headers = {"apns-topic": topic, "apns-push-type": "background", "apns-priority": "5"}
    body = {"aps": {"content-available": 1}}
    answer = client.post(f"/3/device/{next(numbers):064x}", json=body, headers=headers)
    assert answer.status_code == 200, answer.text


def fresh_wake():
    global worker
    with lock:
        worker = worker or Stream(TOPIC)
        push()
        return worker.wake()


def wake_to_release():
    global giver
    with lock:
        if giver:
            giver.answer.close()
        topic = f"{TOPIC}.released{next(numbers)}"
        giver = Stream(topic)
        push(topic)
        return giver.wake()


def fresh_stream():
    # It has another topic, so that it gets no wakes of the worker.
    drained.append(Stream(f"{TOPIC}.drained"))
    return drained[-1].id


@schemathesis.hook
def before_call(context, case, kwargs):
    name = case.operation.definition.raw.get("operationId")
    values = case.path_parameters or {}
    # JSON Schema cannot express that `after` is only allowed with the order of tokens.
    if name == "listDevices" and (case.query or {}).get("sort") == "waiting":
        case.query.pop("after", None)
    if address is None or next(calls) % 2 == 1:
        return
    if name in OF_A_WAKE and re.fullmatch("[0-9a-f]{32}", str(values.get("wake", ""))):
        case.path_parameters["wake"] = wake_to_release() if name == "releaseWake" else fresh_wake()
    elif name == "drainStream" and re.fullmatch("[ -~]+", str(values.get("stream", ""))) and "/" not in values["stream"]:
        case.path_parameters["stream"] = fresh_stream()


@schemathesis.hook
def after_call(context, case, response):
    name = case.operation.definition.raw.get("operationId")
    reached = os.environ.get("WAKEGATE_REACHED")
    if reached and name in OF_A_WAKE | {"drainStream"} and response.status_code < 300:
        with open(reached, "a") as file:
            file.write(f"{name}\n")
