"""A server whose answers end in every way that HTTP/1.1 knows, and in some that it does not.

    ending_server.py CERTIFICATE

CERTIFICATE is a file with a certificate and its key. It listens on two free loopback ports, for cleartext and for TLS,
and prints them. GET /WAY/SIZE answers SIZE bytes of `0123456789` again and again. The first answer of a way that is a cut
has half of them, and the next ones all:

    close       no length is told, and the connection ends: the only sign that there was all of it
    abrupt      the same, but the first time TLS ends without a word (close_notify), as when a packet is forged
    chunked     chunks, of which the first time the last is missing
    length      a length is told, and the first time the connection ends before it
"""

import socket
import ssl
import sys
import threading

seen = {}


def answer(connection, path, is_tls):
    _, way, size = path.split("/")
    seen[path, is_tls] = seen.get((path, is_tls), 0) + 1
    body = (b"0123456789" * (int(size) // 10 + 1))[: int(size)]
    is_cut = way != "close" and seen[path, is_tls] == 1
    part = body[: len(body) // 2] if is_cut else body
    if way == "chunked":
        chunk, last = b"%x\r\n%s\r\n" % (len(part), part), b"" if is_cut else b"0\r\n\r\n"
        head, sent = "transfer-encoding: chunked", chunk + last
    elif way == "length":
        head, sent = f"content-length: {size}", part
    else:
        head, sent = "connection: close", part
    connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\nconnection: close\r\n\r\n".encode() + sent)
    if is_tls and not (way == "abrupt" and is_cut):
        connection.unwrap()


def serve(connection, context):
    try:
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        head = b""
        while b"\r\n\r\n" not in head:
            more = connection.recv(65536)
            if not more:
                return
            head += more
        answer(connection, head.split(b" ")[1].decode(), bool(context))
        raw = connection.detach() if context else connection.fileno()
        closing = socket.socket(fileno=raw) if context else connection
        closing.shutdown(socket.SHUT_WR)
        while closing.recv(65536):
            pass
        closing.close()
    except (ConnectionError, OSError):
        pass


def listen(context):
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, context), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
secure.load_cert_chain(sys.argv[1])
print(listen(None), listen(secure), flush=True)
sys.stdin.read()
