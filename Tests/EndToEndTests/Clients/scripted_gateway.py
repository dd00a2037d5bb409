"""A peer on a free loopback port, which it prints, that takes workers as a gateway does but never ends a stream.

Arguments: the server's certificate and its key. Each line of standard input is the data of a `wake` event for the
stream that is open; an empty line ends its connection, and `event NAME DATA` is an event of another name. It prints
each request as `METHOD PATH BODY`; a wish for more time is answered with the JSON of the last line that began with
`extend `, progress with that of the last one that began with `progress `, a result with 204.
"""

import http.server
import ssl
import sys
import threading

extension = "{}"
progress = '{"deadline":1}'
streams = []
writing = threading.Lock()


def show(line):
    with writing:
        sys.stdout.write(line)
        sys.stdout.flush()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def setup(self):
        self.request.settimeout(None)
        super().setup()

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("wakegate-stream", "a-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(b": hello\n\n")
        ended = threading.Event()
        streams.append((self, ended))
        show(f"GET {self.path} \n")
        # A word each quarter of a second: it is alive, and never done.
        while not ended.wait(0.25):
            with writing:
                self.wfile.write(b": alive\n\n")
        self.close_connection = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        show(f"POST {self.path} {body}\n")
        answer = extension.encode() if self.path.endswith("/extend") else b""
        answer = progress.encode() if self.path.endswith("/progress") else answer
        self.send_response(200 if answer else 204)
        if answer:
            self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass


server = Server(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
for line in sys.stdin:
    line = line.rstrip("\n")
    if line.startswith("extend "):
        extension = line.removeprefix("extend ")
        continue
    if line.startswith("progress "):
        progress = line.removeprefix("progress ")
        continue
    worker, ended = streams[-1]
    if line:
        name, data = "wake", line
        if line.startswith("event "):
            _, name, data = line.split(" ", 2)
        with writing:
            worker.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
    else:
        ended.set()
