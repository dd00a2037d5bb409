"""Pushes several times at once on one connection, round by round, and writes what the gateway says to each round.

Arguments: HOST:PORT, CA file or `-` for cleartext, a file with a client certificate and its key or `-`, topic, and a
round for each further argument: COUNT, COUNT:TOKEN for pushes with a provider token, or `subscribe` for a worker's
stream, which stays open. Each round begins when the one before it is over. The heads of its requests come before all
their bodies, so that they are open together. A line is an event:
  limit N            SETTINGS allow N streams at once
  answered N STATUS  so many pushes of the round were answered so
  refused N          so many streams of the round were reset with REFUSED_STREAM
"""

import collections
import sys

import h2.connection
import h2.errors
import h2.events
import h2.settings

from session import BODY, Session, status_of

address, ca, certificate, topic, *rounds = sys.argv[1:]


class Unlimited(h2.connection.H2Connection):
    """A client that opens as many streams as it likes."""

    @property
    def open_outbound_streams(self):
        return 0


def given(word):
    return None if word == "-" else word


Session.kind = Unlimited
session = Session(address, given(ca), given(certificate), alpn=None)
limit = None


def receive():
    """Receives the next events, and returns their answers and resets by stream."""
    global limit
    events = session.receive()
    assert events is not None, "the gateway closed the connection"
    ended = {}
    for event in events:
        if isinstance(event, h2.events.RemoteSettingsChanged):
            changed = event.changed_settings.get(h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS)
            if changed:
                limit = changed.new_value
                print("limit", limit, flush=True)
        elif isinstance(event, h2.events.ResponseReceived):
            ended[event.stream_id] = f"answered {status_of(event)}"
        elif isinstance(event, h2.events.StreamReset):
            assert event.error_code == h2.errors.ErrorCodes.REFUSED_STREAM, event
            ended[event.stream_id] = "refused"
    session.flush()
    return ended


def push(count, token=None):
    fields = [("authorization", f"bearer {token}")] if token else []
    streams = {session.push(f"{number + 1:064x}", topic, *fields, body=None) for number in range(int(count))}
    session.flush()
    for stream in streams:
        session.h2.send_data(stream, BODY, end_stream=True)
    return streams


while limit is None:
    receive()
for each in rounds:
    is_push = each != "subscribe"
    waiting = push(*each.split(":")) if is_push else {session.request("GET", f"/v1/topics/{topic}/wakes?slots=1")}
    session.flush()
    outcomes = {}
    while waiting:
        ended = receive()
        outcomes.update(ended)
        waiting -= ended.keys()
    for outcome, count in sorted(collections.Counter(outcomes.values()).items()):
        what, _, status = outcome.partition(" ")
        print(f"{what} {count} {status}".strip(), flush=True)
