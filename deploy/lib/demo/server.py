"""A web server with one file, for deploy/demo transfers: `/film`, made of pseudorandom bytes, at so many bytes a second.

Arguments: the file's bytes, bytes a second, and a log that gets a line for each request: its status, the first byte
that was asked for, and how many bytes were sent. It prints its port and the file's SHA-256.
"""

import hashlib
import http.server
import random
import re
import sys
import time

size, pace, log = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
content = random.Random(1).randbytes(size)
digest = hashlib.sha256(content).hexdigest()
tag = f'"{digest[:16]}"'
PIECE = 65536


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("range", ""))
        start = int(wanted[1]) if wanted and self.headers.get("if-range", tag) == tag else 0
        self.send_response(206 if start else 200)
        self.send_header("etag", tag)
        self.send_header("accept-ranges", "bytes")
        self.send_header("content-length", str(size - start))
        if start:
            self.send_header("content-range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        sent, begun = 0, time.monotonic()
        try:
            while start + sent < size:
                piece = content[start + sent : start + sent + PIECE]
                self.wfile.write(piece)
                sent += len(piece)
                time.sleep(max(0, begun + sent / pace - time.monotonic()))
        except ConnectionError:
            pass
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{206 if start else 200} {start} {sent}\n")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, digest, flush=True)
server.serve_forever()
