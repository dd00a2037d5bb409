"""Attacks below HTTP/2 that Python's ssl cannot make: they call its OpenSSL directly."""

import ctypes
import ctypes.util
import socket
import struct
from collections.abc import Callable

SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_2_VERSION = 124, 0x0303
KEY_UPDATE_NOT_REQUESTED, KEY_UPDATE_REQUESTED = 0, 1


def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(ctypes.util.find_library("ssl") or "libssl.so.3")
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    for name, result, arguments in [
        ("TLS_client_method", pointer, []),
        ("SSL_CTX_new", pointer, [pointer]),
        ("SSL_CTX_free", None, [pointer]),
        ("SSL_CTX_ctrl", ctypes.c_long, [pointer, integer, ctypes.c_long, pointer]),
        ("SSL_new", pointer, [pointer]),
        ("SSL_free", None, [pointer]),
        ("SSL_set_fd", integer, [pointer, integer]),
        ("SSL_set_alpn_protos", integer, [pointer, ctypes.c_char_p, ctypes.c_uint]),
        ("SSL_connect", integer, [pointer]),
        ("SSL_do_handshake", integer, [pointer]),
        ("SSL_key_update", integer, [pointer, integer]),
        ("SSL_renegotiate", integer, [pointer]),
        ("SSL_write", integer, [pointer, ctypes.c_char_p, integer]),
        ("SSL_read", integer, [pointer, ctypes.c_char_p, integer]),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class RawTLS:
    """A connection that trusts every certificate."""

    def __init__(self, connect: Callable[[], socket.socket], is_older: bool = False, receive_bytes: int = 0):
        self.library = _library()
        self.socket = connect()
        # OpenSSL uses the descriptor directly, so it must block. The system enforces the time-out.
        self.socket.settimeout(None)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self.socket.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 30, 0))
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.context = self.library.SSL_CTX_new(self.library.TLS_client_method())
        if is_older:
            self.library.SSL_CTX_ctrl(self.context, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_2_VERSION, None)
        self.ssl = self.library.SSL_new(self.context)
        self.library.SSL_set_alpn_protos(self.ssl, b"\x02h2", 3)
        self.library.SSL_set_fd(self.ssl, self.socket.fileno())
        if self.library.SSL_connect(self.ssl) != 1:
            raise ConnectionError("no handshake")

    def close(self) -> None:
        self.library.SSL_free(self.ssl)
        self.library.SSL_CTX_free(self.context)
        self.socket.close()

    def send(self, data: bytes) -> bool:
        return self.library.SSL_write(self.ssl, data, len(data)) == len(data)

    def update_key(self, kind: int = KEY_UPDATE_REQUESTED) -> bool:
        """Returns false if the server accepts no more bytes."""
        return self.library.SSL_key_update(self.ssl, kind) == 1 and self.library.SSL_do_handshake(self.ssl) == 1

    def renegotiate(self) -> bool:
        return self.library.SSL_renegotiate(self.ssl) == 1 and self.library.SSL_do_handshake(self.ssl) == 1

    def receive(self) -> bytes:
        """Returns the received bytes; empty at the end of the connection."""
        room = ctypes.create_string_buffer(65536)
        count = self.library.SSL_read(self.ssl, room, len(room))
        return room.raw[: max(0, count)]


def outcome(attacker: RawTLS) -> str:
    """Returns `GOAWAY code`, or `closed`."""
    received = b""
    while more := attacker.receive():
        received += more
    while len(received) >= 9:
        end = 9 + int.from_bytes(received[:3], "big")
        if received[3] == 7:
            return f"GOAWAY {int.from_bytes(received[13:17], 'big')}"
        received = received[end:]
    return "closed"
