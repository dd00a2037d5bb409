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
import socket
import ssl
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

BODY = b'{"aps":{"content-available":1}}'
address, ca, certificate, topic, *rounds = sys.argv[1:]
host, port = address.rsplit(":", 1)


class Unlimited(h2.connection.H2Connection):
    """A client that opens as many streams as it likes."""

    @property
    def open_outbound_streams(self):
        return 0


def connect():
    plain = socket.create_connection((host, int(port)), timeout=15)
    if ca == "-":
        return plain
    context = ssl.create_default_context(cafile=ca)
    if certificate != "-":
        context.load_cert_chain(certificate)
    return context.wrap_socket(plain, server_hostname=host)


with connect() as connection:
    session = Unlimited(config=h2.config.H2Configuration(header_encoding="utf-8"))
    session.initiate_connection()
    connection.sendall(session.data_to_send())
    limit = None

    def receive():
        """Takes what comes next, and gives the answers and resets in it, by stream."""
        global limit
        received = connection.recv(65536)
        assert received, "the gateway closed the connection"
        ended = {}
        for event in session.receive_data(received):
            if isinstance(event, h2.events.RemoteSettingsChanged):
                changed = event.changed_settings.get(h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS)
                if changed:
                    limit = changed.new_value
                    print("limit", limit, flush=True)
            elif isinstance(event, h2.events.ResponseReceived):
                ended[event.stream_id] = f"answered {dict(event.headers)[':status']}"
            elif isinstance(event, h2.events.StreamReset):
                assert event.error_code == h2.errors.ErrorCodes.REFUSED_STREAM, event
                ended[event.stream_id] = "refused"
        connection.sendall(session.data_to_send())
        return ended

    def open_stream(method, path, fields, has_body):
        stream = session.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", f"{host}:{port}"), (":path", path)]
        session.send_headers(stream, head + fields, end_stream=not has_body)
        return stream

    def push(count, token=None):
        fields = [("apns-topic", topic), ("apns-push-type", "background"), ("apns-priority", "5")]
        if token:
            fields.append(("authorization", f"bearer {token}"))
        paths = [f"/3/device/{number + 1:064x}" for number in range(int(count))]
        streams = [open_stream("POST", path, fields, has_body=True) for path in paths]
        connection.sendall(session.data_to_send())
        for stream in streams:
            session.send_data(stream, BODY, end_stream=True)
        connection.sendall(session.data_to_send())
        return streams

    def subscribe():
        stream = open_stream("GET", f"/v1/topics/{topic}/wakes?slots=1", [], has_body=False)
        connection.sendall(session.data_to_send())
        return [stream]

    while limit is None:
        receive()
    for each in rounds:
        waiting = set(subscribe() if each == "subscribe" else push(*each.split(":")))
        outcomes = {}
        while waiting:
            ended = receive()
            outcomes.update(ended)
            waiting -= ended.keys()
        for outcome, count in sorted(collections.Counter(outcomes.values()).items()):
            what, _, status = outcome.partition(" ")
            print(f"{what} {count} {status}".strip(), flush=True)
