"""Pushes twice on one connection, the second time with its body held back for as long as the stream's window is too small.

Arguments: HOST:PORT, CA file, topic, and `wait` or `give-up`, which resets the second push while it is held back.
A line is an event:
  STATUS   of an answer
  window N the bytes that the second push may send when its head has left
  held N   so many bytes of it wait, and the gateway has answered a PING since
  open     the window is large enough
"""

import sys

import h2.errors
import h2.events
import h2.exceptions

from session import BODY, Session, status_of

address, ca, topic, end = sys.argv[1:]
session = Session(address, ca)


def receive(wanted):
    """Receives events until one of this kind arrives; the gateway may send GOAWAY after it."""
    for event in session.events():
        if isinstance(event, wanted):
            session.flush()
            return event
        assert not isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)), event
    raise AssertionError("the gateway closed the connection")


def show_answer():
    session.flush()
    print(status_of(receive(h2.events.ResponseReceived)), flush=True)


session.push(f"{1:064x}", topic)
show_answer()
stalled = session.push(f"{3:064x}", topic, body=None)
session.flush()
window = session.h2.local_flow_control_window(stalled)
print("window", window, flush=True)
session.h2.send_data(stalled, BODY[:window])
rest = BODY[window:]
try:
    session.h2.send_data(stalled, rest, end_stream=True)
    sys.exit("nothing was held back")
except h2.exceptions.FlowControlError:
    session.h2.ping(b"12345678")
    session.flush()
    receive(h2.events.PingAckReceived)
    print("held", len(rest), flush=True)
if end == "give-up":
    session.h2.reset_stream(stalled, h2.errors.ErrorCodes.CANCEL)
    session.flush()
    sys.exit()
while session.h2.local_flow_control_window(stalled) < len(rest):
    receive(h2.events.RemoteSettingsChanged)
print("open", flush=True)
session.h2.send_data(stalled, rest, end_stream=True)
show_answer()
