"""A server on a free loopback port, which it prints, that ends each event stream without an event.

The head of a second answer at /v1/events is longer than clients accept. Other paths than /v1/events and /v1/live are
answered 404.
"""

import http.server

requested = []


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        path = self.path.split("?")[0]
        self.send_response(200 if path in ("/v1/events", "/v1/live") else 404)
        if path == "/v1/events" and path in requested:
            for name in ("x-first", "x-second"):
                self.send_header(name, "x" * 60_000)
        requested.append(path)
        self.end_headers()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
