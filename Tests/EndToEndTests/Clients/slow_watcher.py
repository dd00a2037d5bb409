"""Watches a gateway over HTTP/2 with a window that lets nothing through, and says how its stream ended.

Arguments: HOST:PORT of the admin listener, and of the plain listener, where a crowd of workers with long names
subscribes first, so that events are large.
"""

import select
import socket
import sys
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

WORKERS, TOPICS, SECONDS = 100, 50, 60


class Client:
    def __init__(self, address, window=None):
        host, port = address.rsplit(":", 1)
        self.address = address
        self.socket = socket.create_connection((host, int(port)))
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.h2.initiate_connection()
        if window is not None:
            self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.send()

    def send(self):
        self.socket.sendall(self.h2.data_to_send())

    def get(self, path):
        stream = self.h2.get_next_available_stream_id()
        fields = [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", self.address)]
        self.h2.send_headers(stream, fields, end_stream=True)
        self.send()
        return stream

    def events(self, deadline):
        while time.monotonic() < deadline:
            if not select.select([self.socket], [], [], max(0, deadline - time.monotonic()))[0]:
                return
            received = self.socket.recv(65536)
            if not received:
                return
            yield from self.h2.receive_data(received)
            self.send()


deadline = time.monotonic() + SECONDS
workers = Client(sys.argv[2])
waiting = {workers.get(f"/v1/topics/{'t' * 240}.{number % TOPICS}/wakes?slots=1&name={'n' * 120}{number}")
           for number in range(WORKERS)}
for event in workers.events(deadline):
    if isinstance(event, h2.events.ResponseReceived):
        waiting.discard(event.stream_id)
        if not waiting:
            break

watcher = Client(sys.argv[1], window=0)
stream = watcher.get("/v1/live")
for event in watcher.events(deadline):
    if isinstance(event, h2.events.StreamReset) and event.stream_id == stream:
        print(h2.errors.ErrorCodes(event.error_code).name)
        break
else:
    print(f"still open after {SECONDS} seconds")
