"""Servers of downloads and uploads that break the rules of HTTP, or stretch them.

usage: faulty_server.py CERTIFICATE

CERTIFICATE is a file with a certificate and its key. The server prints three free loopback ports: the first speaks
HTTP/1.1 in cleartext, the second HTTP/2 over TLS, the third HTTP/1.1 over TLS. Each line of standard input lets one
waiting request continue.

GET over HTTP/1.1, with bodies of 60,000 bytes; the first answer of a path is usually cut after 40,000:

    /weak       a weak entity tag and an old date; the next answer has another tag and other bytes
    /dated      an old date alone; parts of the same bytes
    /tagged     a date at first, and an entity tag as well in the part, which is of other bytes
    /untagged   a strong tag at first, and none in the part, which is of other bytes
    /short      no length at first; then a part of 200 bytes without the whole length, then one with it
    /overlong   a part whose body is of other bytes, and longer than its range
    /complete   all the chunks but the last; then 416 with the whole length
    /endless    all the chunks but the last, each time, and no validator
    /cookie     redirects to itself until a request has the cookie that the redirect sets
    /coded      gzip, whether it was requested or not
    /log        the requests so far: path, range, accept-encoding, cookie, content-length

GET /WAY/SIZE over HTTP/1.1 answers SIZE bytes of `0123456789` again and again. The first answer of a way that is a cut
has half of them, and the next ones all:

    close       no length is told, and the connection ends: the only sign that there was all of it
    abrupt      the same, but the first time TLS ends without a word (close_notify), as when a packet is forged
    chunked     chunks, of which the first time the last is missing
    length      a length is told, and the first time the connection ends before it

PUT over HTTP/1.1:

    /slow       the server reads half of the body, prints `half`, and waits for a line before it reads the rest
    /sum        the SHA-256 of the last body of /slow is the answer of a GET
    /reset      201 with a whole body after the first bytes, and then a reset

Over HTTP/2 the first stream is reset with NO_ERROR after 30,000 of 60,000 bytes, and later ones are whole.
"""

import gzip
import hashlib
import json
import socket
import ssl
import struct
import sys
import threading

lines = threading.Semaphore(0)
log, seen, sums = [], {}, []
old = [("Last-Modified", "Mon, 02 Nov 2026 08:00:00 GMT"), ("Date", "Fri, 27 Nov 2026 08:00:00 GMT")]
first, second = b"1234567890" * 6000, b"abcdefghij" * 6000


def part(body, start, tag=None, dated=False, total=True, last=None):
    last = len(body) - 1 if last is None else last
    whole = len(body) if total else "*"
    fields = [("Content-Range", f"bytes {start}-{last}/{whole}")] + (old if dated else [])
    return 206, fields + ([("ETag", tag)] if tag else []), body[start : last + 1]


def cut(body, fields):
    return 200, fields + [("Content-Length", str(len(body)))], body[:40000]


def chunks(body, fields=()):
    sent = b"".join(b"%x\r\n%s\r\n" % (10000, body[at : at + 10000]) for at in range(0, len(body), 10000))
    return 200, [("Transfer-Encoding", "chunked"), *fields], sent


def download(path, turn, fields):
    start = int(fields["range"].split("=")[1].split("-")[0]) if "range" in fields else None
    whole = 200, [], second
    match path:
        case "/weak" if turn == 1:
            return cut(first, [("ETag", 'W/"1"'), *old])
        case "/weak":
            return whole if start is None else part(second, start, 'W/"2"', dated=True)
        case "/dated":
            return cut(first, old) if turn == 1 else part(first, start or 0, dated=True)
        case "/tagged" if turn == 1:
            return cut(first, old)
        case "/untagged" if turn == 1:
            return cut(first, [("ETag", '"1"')])
        case "/tagged" | "/untagged":
            tag = '"2"' if path == "/tagged" else None
            return whole if start is None else part(second, start, tag, dated=path == "/tagged")
        case "/short" if turn == 1:
            return 200, [("ETag", '"1"'), ("Transfer-Encoding", "chunked")], b"9c40\r\n" + first[:40000] + b"\r\n"
        case "/short" if turn == 2:
            return part(first, start, '"1"', total=False, last=start + 199)
        case "/short":
            return part(first, start or 0, '"1"')
        case "/overlong" if turn == 1:
            return cut(first, [("ETag", '"1"')])
        case "/overlong":
            return whole if start is None else (206, part(first, start, '"1"', last=start + 9)[1], second[start:])
        case "/complete" if start is not None:
            return 416, [("Content-Range", f"bytes */{len(first)}")], b""
        case "/complete":
            return chunks(first, [("ETag", '"1"')])
        case "/endless":
            return chunks(first)
        case "/cookie" if "seen=1" not in fields.get("cookie", ""):
            return 302, [("Location", "/cookie"), ("Set-Cookie", "seen=1; Path=/")], b""
        case "/coded":
            return 200, [("Content-Encoding", "gzip")], gzip.compress(first, mtime=0)
        case "/sum":
            return 200, [], sums[-1].encode()
        case "/log":
            return 200, [], json.dumps(log).encode()
    return whole


def ended(connection, path, turn):
    """An answer that ends in one of the ways of /WAY/SIZE."""
    _, way, size = path.split("/")
    body = (b"0123456789" * (int(size) // 10 + 1))[: int(size)]
    is_cut = way != "close" and turn == 1
    sent = body[: len(body) // 2] if is_cut else body
    if way == "chunked":
        sent = b"%x\r\n%s\r\n" % (len(sent), sent) + (b"" if is_cut else b"0\r\n\r\n")
    told = {"chunked": "transfer-encoding: chunked\r\n", "length": f"content-length: {size}\r\n"}.get(way, "")
    connection.sendall(f"HTTP/1.1 200 OK\r\n{told}connection: close\r\n\r\n".encode() + sent)
    if isinstance(connection, ssl.SSLSocket) and not (way == "abrupt" and is_cut):
        connection.unwrap()


def slow(connection, body, length):
    digest = hashlib.sha256(body)
    count = len(body)
    while count < length:
        if count >= length // 2 and not seen.setdefault("told", False):
            seen["told"] = True
            print("half", flush=True)
            lines.acquire()
        more = connection.recv(min(4096, length - count))
        if not more:
            return 0
        digest.update(more)
        count += len(more)
    sums.append(digest.hexdigest())
    return 201, [], b""


def serve(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(4096)
        if not more:
            return
        head += more
    head, body = head.split(b"\r\n\r\n", 1)
    request, *rows = head.decode("latin-1").split("\r\n")
    method, path, _ = request.split(" ")
    fields = {name.lower(): value.strip() for name, value in (row.split(":", 1) for row in rows)}
    if path not in ("/log", "/sum"):
        log.append([path] + [fields.get(name) for name in ("range", "accept-encoding", "cookie", "content-length")])
    key = (path, isinstance(connection, ssl.SSLSocket))
    seen[key] = seen.get(key, 0) + 1
    if path.count("/") == 2:
        return ended(connection, path, seen[key])
    if path == "/slow":
        answer = slow(connection, body, int(fields["content-length"]))
    elif path == "/reset":
        answer = 201, [], b"enough"
    else:
        answer = download(path, seen[key], fields)
    if not answer:
        return
    status, fields, body = answer
    if not any(name in ("Content-Length", "Transfer-Encoding") for name, _ in fields):
        fields = [*fields, ("Content-Length", str(len(body)))]
    if path != "/reset":
        fields = [*fields, ("Connection", "close")]
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    connection.sendall(f"HTTP/1.1 {status} -\r\n{head}\r\n".encode() + body)
    if path == "/reset":
        # The client reads the answer before the reset discards it.
        lines.acquire()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


# Types and flags of frames, and the length of the preface (RFC 9113).
DATA, HEADERS, RST_STREAM, SETTINGS = 0, 1, 3, 4
ACK, END_STREAM, END_HEADERS = 1, 1, 4
PREFACE_BYTES = 24


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def serve_http2(connection):
    stream = connection.makefile("rwb")
    stream.read(PREFACE_BYTES)
    stream.write(frame(SETTINGS, 0, 0))
    stream.flush()
    while header := stream.read(9):
        length, kind, flags = int.from_bytes(header[:3], "big"), header[3], header[4]
        number = int.from_bytes(header[5:9], "big")
        stream.read(length)
        if kind == SETTINGS and not flags & ACK:
            stream.write(frame(SETTINGS, ACK, 0))
        if kind == HEADERS:
            seen["http2"] = seen.get("http2", 0) + 1
            count = 3 if seen["http2"] == 1 else 6
            stream.write(frame(HEADERS, END_HEADERS, number, b"\x88"))
            for at in range(count):
                stream.write(frame(DATA, END_STREAM if at == 5 else 0, number, first[at * 10000 : (at + 1) * 10000]))
            if count == 3:
                stream.write(frame(RST_STREAM, 0, number, struct.pack(">I", 0)))
        stream.flush()


def listen(handler, context=None):
    listener = socket.create_server(("127.0.0.1", 0))

    def run(connection):
        try:
            connection = context.wrap_socket(connection, server_side=True) if context else connection
            handler(connection)
        except OSError:
            pass
        connection.close()

    def accept():
        while True:
            threading.Thread(target=run, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


secure, secure_http2 = (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(2))
for context in (secure, secure_http2):
    context.load_cert_chain(sys.argv[1])
secure_http2.set_alpn_protocols(["h2"])
print(listen(serve), listen(serve_http2, secure_http2), listen(serve, secure), flush=True)
for _ in sys.stdin:
    lines.release()
