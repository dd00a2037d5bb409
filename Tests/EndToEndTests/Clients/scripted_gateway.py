"""A peer on a free loopback port, which it prints, that takes workers as a gateway does but never ends a stream.

Arguments: the server's certificate, and its key unless it is in the same file. It prints each request as
`METHOD PATH BODY`. Each line of standard input is a command, a JSON object:

- `{"do": "event", "name", "data"}` sends an event on the stream that is open, and `{"do": "end"}` ends its connection;
- `{"do": "answer", "method", "end", "status", "body", "headers"}` is the answer to requests of this method whose path
  without its query ends so: to the next one that has no such answer yet, or, with `"lasts": true`, to all that have no
  other, until there is a newer one. Of an answer to `/wakes` the headers alone count: the next stream has them.

What nothing is said of is answered 204. A command with `"told": true` is followed by a line `done`.
"""

import http.server
import json
import ssl
import sys
import threading

import scripted_peer
from scripted_peer import show, streams, take_answer


class Handler(scripted_peer.Handler):
    def setup(self):
        self.request.settimeout(None)
        super().setup()

    def answer(self):
        path = self.path.split("?")[0]
        if path.endswith("/wakes"):
            headers = take_answer(self.command, path, {}).get("headers", {})
            # A comment every quarter of a second: the answer is alive, but never ends.
            return self.stream(b": hello\n\n", {"wakegate-stream": "a-stream", "connection": "close", **headers}, 0.25)
        body = self.body()
        answer = take_answer(self.command, path, {"status": 204})
        show(f"{self.command} {self.path} {body}")
        return self.reply(answer)

    do_GET = do_POST = do_PATCH = do_DELETE = answer


class Server(scripted_peer.Quiet, http.server.HTTPServer):
    pass


server = Server(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(*sys.argv[1:])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
show(str(server.server_port))
threading.Thread(target=server.serve_forever, daemon=True).start()
for line in sys.stdin:
    command = json.loads(line)
    scripted_peer.obey(command, streams[-1:])
    if command.get("told"):
        show("done")
