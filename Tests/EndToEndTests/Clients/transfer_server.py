"""An HTTP/1.1 server that transfers are tried against: entities with ranges and validators, and faults on request.

usage: transfer_server.py PORTFILE [LOG]

GET /entity/SIZE/SEED answers SIZE bytes that SEED makes, with a strong ETag. The query says what is wrong with it:
noranges=1 knows no ranges and sends no validator; cut=N ends the connection after N bytes of each answer; rate=N sends
N bytes a second; status=S answers S, with a body of as many words as times=N says, to be asked again after=N seconds;
fail=N answers 503 the first N times; length=L announces L as the length; stall=1 sends half and then nothing; change=1
has another ETag and other bytes after the first answer. GET /digest/SIZE/SEED says the SHA-256 of those bytes. PUT
/upload/NAME keeps what was sent, redirects with redirect=URL, or never ends its answer with endless=1; GET /upload/NAME
says its SHA-256. GET /log lists the requests since the last look: method, path, range.
LOG gets a line for each answer with an entity: its status, its first byte, and how many bytes were sent.
"""

import hashlib
import json
import os
import random
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log, uploads, seen = [], {}, {}
lock = threading.Lock()
contents = {}


def content(size, seed):
    key = (size, seed)
    with lock:
        if key not in contents:
            block = random.Random(seed).randbytes(min(size, 1 << 20))
            contents[key] = (block * (size // max(1, len(block)) + 1))[:size]
        return contents[key]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def log_message(self, *_):
        pass

    def note(self):
        with lock:
            log.append([self.command, self.path, self.headers.get("range")])

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        self.note()
        digest, left = hashlib.sha256(), int(self.headers.get("content-length", 0))
        total = left
        while left > 0:
            part = self.rfile.read(min(left, 1 << 16))
            if not part:
                return
            digest.update(part)
            left -= len(part)
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        if "redirect" in query:
            return self.answer(307, location=query["redirect"])
        if "endless" in query:
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b"x" * 65_536)
        with lock:
            uploads[urllib.parse.urlsplit(self.path).path] = {"sha256": digest.hexdigest(), "bytes": total}
        self.answer(201)

    def do_GET(self):
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        if parts.path == "/log":
            with lock:
                told = json.dumps(log).encode()
                log.clear()
            return self.answer(200, told)
        self.note()
        if parts.path.startswith("/upload/"):
            with lock:
                return self.answer(200, json.dumps(uploads.get(parts.path)).encode())
        if parts.path.startswith("/digest/"):
            _, _, size, seed = parts.path.split("/")
            return self.answer(200, hashlib.sha256(content(int(size), seed)).hexdigest().encode())
        with lock:
            seen[self.path] = seen.get(self.path, 0) + 1
            turn = seen[self.path]
        if "status" in query:
            body = b"no" * int(query.get("times", 1))
            return self.answer(int(query["status"]), body, retry_after=query.get("after", "0"))
        if turn <= int(query.get("fail", 0)):
            return self.answer(503, b"later", retry_after="0")
        _, _, size, seed = parts.path.split("/")
        seed += str(turn > 1) if "change" in query else ""
        self.entity(content(int(size), seed), '"%s-%s"' % (size, seed), query)

    def entity(self, body, tag, query):
        first, size, status = 0, len(body), 200
        wanted = self.headers.get("range")
        ranges = "noranges" not in query
        if wanted and ranges and self.headers.get("if-range") in (None, tag):
            first = int(wanted.split("=")[1].split("-")[0])
            if first >= size:
                return self.answer(416, content_range="bytes */%d" % size)
            status = 206
        self.send_response(status)
        if ranges:
            self.send_header("etag", tag)
            self.send_header("accept-ranges", "bytes")
        if status == 206:
            self.send_header("content-range", "bytes %d-%d/%d" % (first, size - 1, size))
        self.send_header("content-length", query.get("length", str(size - first)))
        self.end_headers()
        self.sent = 0
        try:
            self.send_body(body[first:], query)
        finally:
            if len(sys.argv) > 2:
                with open(sys.argv[2], "a") as file:
                    file.write(f"{status} {first} {self.sent}\n")

    def send_body(self, body, query):
        if "cut" in query:
            body = body[: int(query["cut"])]
        if "stall" in query:
            self.wfile.write(body[: len(body) // 2])
            return time.sleep(int(query["stall"]))
        rate = int(query.get("rate", 0))
        step = max(1, rate // 20) if rate else 1 << 18
        for start in range(0, len(body), step):
            self.sent += self.wfile.write(body[start : start + step])
            if rate:
                time.sleep(0.05)
        if "cut" in query or "length" in query:
            self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
