"""A peer on a UNIX socket that answers as a transfers agent does, for its library and its command line.

Argument: the path of the socket. It prints `ready`, then each request as `METHOD PATH BODY`. Each line of standard input
is a command, a JSON object, which is followed by a line `done`:

- `{"do": "answer", "method", "end", "status", "body"}` is the answer to the next request of this method whose path
  without its query ends so; with `"lasts": true` to all that have no other. Status 0 ends the connection instead.
- `{"do": "event", "name", "data"}` sends an event on the streams that are open, and `{"do": "end"}` ends them;
- `{"do": "leave"}` ends the streams and takes the socket away, and `{"do": "return"}` makes it anew.

What nothing is said of is answered 200 with `{}`. A stream of events begins with `event: state`.
"""

import json
import os
import socketserver
import sys
import threading

import scripted_peer
from scripted_peer import show, streams, take_answer

path = sys.argv[1]


class Handler(scripted_peer.Handler):
    def answer(self):
        body = self.body()
        if self.server.has_left:
            # This is an earlier connection, which the end of a real agent would have closed.
            self.close_connection = True
            return None
        target = self.path.split("?")[0]
        answer = take_answer(self.command, target, {"status": 200, "body": "{}"})
        if target.endswith("/events") and answer.get("body") == "{}":
            return self.stream(b'event: state\ndata: {"session":"s","transfers":{}}\n\n', {})
        show(f"{self.command} {self.path} {body}")
        if answer["status"] == 0:
            self.close_connection = True
            return None
        return self.reply(answer)

    do_GET = do_POST = do_PUT = do_DELETE = answer


class Server(scripted_peer.Quiet, socketserver.UnixStreamServer):
    has_left = False
    request_queue_size = 64


def listen():
    if os.path.exists(path):
        os.remove(path)
    server = Server(path, Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    return server


def obey(command, server):
    if command["do"] == "return":
        return listen()
    if command["do"] == "leave":
        server.has_left = True
        server.shutdown()
        server.server_close()
        os.remove(path)
    scripted_peer.obey(command, list(streams))
    return server


current = listen()
show("ready")
for line in sys.stdin:
    current = obey(json.loads(line), current)
    show("done")
