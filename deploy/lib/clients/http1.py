"""An HTTP/1.1 client in cleartext, which costs Python a tenth of HTTP/2."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable

LINE_MAX = 1 << 20
CONNECT_SECONDS = 5
# Only a gateway that is stuck answers later than this.
ANSWER_SECONDS = 6
# The number of concurrent requests of `read_all`. Their answers fit into the sockets' buffers, even if the gateway
# writes long before they are read.
REQUESTS_AT_ONCE = 64


class Lost(Exception):
    """The connection ended or timed out. `is_open` is true if the request may have had an effect."""

    def __init__(self, is_open: bool):
        super().__init__("the connection was lost")
        self.is_open = is_open


class Connection:
    def __init__(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.address, self.reader, self.writer = address, reader, writer

    @classmethod
    async def open(cls, address: str) -> "Connection":
        host, _, port = address.rpartition(":")
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return cls(address, *await asyncio.open_connection(host, int(port), limit=LINE_MAX))
        except (OSError, ValueError, TimeoutError):
            raise Lost(is_open=False) from None

    def close(self) -> None:
        self.writer.transport.abort()

    def send(self, method: str, path: str, fields: str, body: bytes) -> None:
        length = f"content-length: {len(body)}\r\n" if body else ""
        head = f"{method} {path} HTTP/1.1\r\nhost: {self.address}\r\n{fields}{length}\r\n"
        self.writer.write(head.encode() + body)

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.partition(": ") for line in lines[1:] if line)
        return int(lines[0].split(" ", 2)[1]), {name.lower(): value for name, _, value in fields}

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Returns status, header and content of the next answer."""
        status, header = await self.head()
        return status, header, await self.reader.readexactly(int(header.get("content-length", 0)))

    async def request(self, method: str, path: str, fields: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Returns status, header and content. `fields` are complete header lines with CR LF."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                self.send(method, path, fields, body)
                return await self.answer()
        except (OSError, EOFError, ValueError, TimeoutError):
            self.close()
            raise Lost(is_open=True) from None

    async def events(self, path: str) -> AsyncIterator[bytes]:
        """Yields the events of a stream until it ends. Raises `Lost` if the answer is not a stream."""
        self.send("GET", path, "accept: text/event-stream\r\n", b"")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                status, header = await self.head()
        except (OSError, EOFError, ValueError, TimeoutError):
            raise Lost(is_open=False) from None
        if status != 200 or header.get("transfer-encoding") != "chunked":
            raise Lost(is_open=False)
        text = b""
        try:
            while size := int(await self.reader.readline() or b"0", 16):
                text += (await self.reader.readexactly(size + 2))[:-2]
                *events, text = text.split(b"\n\n")
                for event in events:
                    yield event
        except (OSError, EOFError, ValueError):
            return


class Pool:
    """One connection to each of several gateways, opened again after a loss or when the gateway has moved."""

    def __init__(self) -> None:
        self.connections: dict[int, Connection] = {}

    async def request(
        self, number: int, address: str, method: str, path: str, fields: str = "", body: bytes = b""
    ) -> tuple[int, dict[str, str], bytes]:
        connection = self.connections.get(number)
        if connection is None or connection.address != address or connection.writer.is_closing():
            if connection is not None:
                connection.close()
            connection = self.connections[number] = await Connection.open(address)
        try:
            answer = await connection.request(method, path, fields, body)
        except Lost:
            self.connections.pop(number, None)
            raise
        if answer[1].get("connection") == "close":
            self.connections.pop(number).close()
        return answer

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()


async def read_all(address: str, paths: Iterable[str]) -> list[tuple[int, dict]]:
    """Returns the status and the JSON of each path, in order, from pipelined requests on one connection.

    Raises OSError or asyncio.IncompleteReadError if the gateway ends.
    """
    host, _, port = address.rpartition(":")
    connection = Connection(address, *await asyncio.open_connection(host, int(port), limit=LINE_MAX))
    answers: list[tuple[int, dict]] = []
    asked = list(paths)
    try:
        for start in range(0, len(asked), REQUESTS_AT_ONCE):
            some = asked[start : start + REQUESTS_AT_ONCE]
            for path in some:
                connection.send("GET", path, "", b"")
            await connection.writer.drain()
            for _ in some:
                status, _, content = await connection.answer()
                answers.append((status, json.loads(content)))
    finally:
        connection.writer.close()
    return answers
