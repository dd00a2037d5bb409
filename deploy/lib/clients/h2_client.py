"""An HTTP/2 client with one connection and concurrent requests, whose server may disappear at any time."""

import asyncio
import contextlib
import itertools
import json
import logging
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

READ_BYTES = 65536

# It warns about writes to lost connections, which are normal here.
logging.getLogger("asyncio").setLevel(logging.ERROR)


class ConnectionLost(Exception):
    """The connection ended before the answer arrived: the request may or may not have had an effect."""


@dataclass
class Response:
    """The answer on one stream. `head` is done after the headers; then there are chunks of the body, and None at its
    end."""

    head: asyncio.Future = field(repr=False)
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_whole: bool = False
    chunks: asyncio.Queue = field(default_factory=asyncio.Queue, repr=False)

    async def whole(self) -> "Response":
        await self.head
        while (chunk := await self.chunks.get()) is not None:
            self.body += chunk
        return self

    def json(self) -> dict:
        if not self.is_whole:
            raise ConnectionLost
        return json.loads(self.body)


class Client:
    """One connection, with TLS if an authority's file is given, otherwise cleartext with prior knowledge."""

    def __init__(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, scheme: str):
        self.address, self.reader, self.writer, self.scheme = address, reader, writer, scheme
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.responses: dict[int, Response] = {}
        self.is_lost = False
        self.window_opened = asyncio.Event()
        self.ping_numbers = itertools.count()
        self.pings: dict[bytes, asyncio.Future] = {}
        self.h2.initiate_connection()
        self.flush()
        self.pump = asyncio.create_task(self.read_all())

    @classmethod
    async def connect(cls, address: str, ca: str | None = None) -> "Client":
        host, port = address.rsplit(":", 1)
        context = None
        if ca:
            context = ssl.create_default_context(cafile=ca)
            context.set_alpn_protocols(["h2"])
        try:
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
        except (OSError, ssl.SSLError) as error:
            raise ConnectionLost from error
        return cls(address, reader, writer, "https" if ca else "http")

    async def close(self) -> None:
        self.pump.cancel()
        await asyncio.gather(self.pump, return_exceptions=True)
        self.lose()

    async def ping(self) -> None:
        """Returns after everything that the server sent before its answer was received, or the connection is lost."""
        if self.is_lost:
            return
        name = next(self.ping_numbers).to_bytes(8, "big")
        try:
            self.h2.ping(name)
        except h2.exceptions.ProtocolError:
            # After a GOAWAY, the session accepts nothing more. The connection ends soon.
            await asyncio.gather(self.pump, return_exceptions=True)
            return
        self.pings[name] = asyncio.get_running_loop().create_future()
        self.flush()
        await self.pings[name]

    async def leave(self) -> None:
        """Closes the connection and returns once the server has noticed. Data received before can still be read."""
        await self.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await self.writer.wait_closed()

    async def request(
        self, method: str, path: str, body: bytes | None = None, headers: list[tuple[str, str]] | None = None
    ) -> Response:
        return await (await self.send(method, path, body, headers)).whole()

    async def events(
        self, path: str, headers: list[tuple[str, str]] | None = None
    ) -> AsyncIterator[tuple[str, dict]]:
        """Yields the server-sent events of a path, as names and JSON; ends with the stream or the connection.

        An answer other than 200 is one event, `refused`, with the response.
        """
        response = await self.send("GET", path, None, headers)
        await response.head
        if response.status != 200:
            if response.status != 503:
                raise AssertionError(f"GET {path} was answered {response.status}")
            yield "refused", {"response": await response.whole()}
            return
        text = b""
        while (chunk := await response.chunks.get()) is not None:
            text += chunk
            *blocks, text = text.split(b"\n\n")
            for block in blocks:
                fields = [line.partition(b":")[::2] for line in block.split(b"\n") if not line.startswith(b":")]
                data = b"\n".join(value.strip() for name, value in fields if name == b"data")
                name = next((value.strip().decode() for key, value in fields if key == b"event"), "message")
                if data:
                    yield name, json.loads(data)

    async def send(
        self, method: str, path: str, body: bytes | None, headers: list[tuple[str, str]] | None
    ) -> Response:
        if self.is_lost:
            raise ConnectionLost
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", self.scheme), (":authority", self.address), (":path", path)]
        response = self.responses[stream] = Response(asyncio.get_running_loop().create_future())
        try:
            self.h2.send_headers(stream, head + (headers or []), end_stream=body is None)
            self.flush()
            while body and not self.is_lost and self.h2.local_flow_control_window(stream) < len(body):
                self.window_opened.clear()
                await self.window_opened.wait()
            if self.is_lost:
                raise ConnectionLost
            if body is not None:
                self.h2.send_data(stream, body, end_stream=True)
                self.flush()
        except h2.exceptions.ProtocolError as error:
            # The gateway sent GOAWAY. After that, the session accepts nothing more.
            raise ConnectionLost from error
        return response

    def flush(self) -> None:
        if waiting := self.h2.data_to_send():
            self.writer.write(waiting)

    async def read_all(self) -> None:
        try:
            while received := await self.reader.read(READ_BYTES):
                for event in self.h2.receive_data(received):
                    self.take(event)
                self.flush()
        except (OSError, ssl.SSLError, h2.exceptions.ProtocolError):
            pass
        finally:
            self.lose()

    def take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            self.window_opened.set()
            return
        if isinstance(event, h2.events.PingAckReceived):
            self.pings.pop(event.ping_data).set_result(None)
            return
        response = self.responses.get(getattr(event, "stream_id", None) or 0)
        if response is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            response.headers = dict(event.headers)
            response.status = int(response.headers[":status"])
            response.head.set_result(None)
        elif isinstance(event, h2.events.DataReceived):
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            response.chunks.put_nowait(event.data)
        elif isinstance(event, h2.events.StreamEnded | h2.events.StreamReset):
            response.is_whole = isinstance(event, h2.events.StreamEnded)
            self.end(self.responses.pop(event.stream_id))

    @staticmethod
    def end(response: Response) -> None:
        if not response.head.done():
            response.head.set_exception(ConnectionLost())
            # If no caller waits for the exception any more, reading it here prevents a warning.
            response.head.exception()
        response.chunks.put_nowait(None)

    def lose(self) -> None:
        self.is_lost = True
        self.window_opened.set()
        for response in self.responses.values():
            self.end(response)
        self.responses.clear()
        for answered in self.pings.values():
            answered.set_result(None)
        self.pings.clear()
        self.writer.close()
