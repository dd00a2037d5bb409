"""A gateway that follows a script: HTTP/2 in cleartext, one step after another.

For SDKs in other languages it is a program: `python3 scripted.py SCENARIO.json`. It writes a line {"url": ...}, then
{"stop": true} when the script stops the worker, and finally {"fault": text or null}. Its standard input has a line with
the id of each wake whose handler begins, and ends when the worker has ended. Requests that arrived by then and match no
step are a fault.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any, Awaitable, Callable, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple, TypeVar
from urllib.parse import parse_qs, urlsplit

import h2.config
import h2.connection
import h2.events
import h2.exceptions

TOPIC = "com.example.app"
DEVICE = "0badcafe" * 4
T = TypeVar("T")


class Request(NamedTuple):
    connection: Connection
    stream: int
    method: str
    path: str
    query: Mapping[str, List[str]]
    headers: Mapping[str, str]
    body: Any


class Connection:
    """One client's connection."""

    def __init__(self, gateway: ScriptedGateway, writer: asyncio.StreamWriter) -> None:
        self.gateway, self.writer, self.is_silent = gateway, writer, False
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.heads: Dict[int, Tuple[Mapping[str, str], bytes]] = {}

    async def serve(self, reader: asyncio.StreamReader) -> None:
        self.h2.initiate_connection()
        self.flush()
        try:
            while data := await reader.read(65536):
                if not self.is_silent:
                    for event in self.h2.receive_data(data):
                        self.received(event)
                    self.flush()
        except (ConnectionError, h2.exceptions.ProtocolError):
            pass
        finally:
            self.writer.close()

    def received(self, event: object) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self.heads[event.stream_id] = (dict(event.headers), b"")  # type: ignore[arg-type]
        elif isinstance(event, h2.events.DataReceived):
            headers, body = self.heads[event.stream_id]
            self.heads[event.stream_id] = (headers, body + event.data)
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        if isinstance(event, h2.events.StreamEnded):
            headers, body = self.heads.pop(event.stream_id)
            url = urlsplit(headers[":path"])
            content = json.loads(body) if body else None
            query = parse_qs(url.query, keep_blank_values=True)
            request = Request(self, event.stream_id, headers[":method"], url.path, query, headers, content)
            self.gateway.requests.put_nowait(request)

    def flush(self) -> None:
        data = self.h2.data_to_send()
        if data and not self.writer.is_closing():
            self.writer.write(data)

    async def send(self, stream: int, data: bytes, size: Optional[int] = None) -> None:
        for start in range(0, len(data), size or 16384):
            self.h2.send_data(stream, data[start : start + (size or 16384)])
            self.flush()
            if size:
                await asyncio.sleep(0)  # Each piece is sent separately.

    def answer(self, stream: int, status: int, headers: Mapping[str, str], body: Any, ends: bool) -> None:
        fields = [(":status", str(status)), *headers.items()]
        content = b"" if body is None else json.dumps(body).encode()
        self.h2.send_headers(stream, fields, end_stream=ends and not content)
        if content:
            self.h2.send_data(stream, content, end_stream=ends)
        self.flush()


class ScriptedGateway:
    """Plays a script. A step calls `stop` to stop the worker."""

    def __init__(self, script: List[Dict[str, Any]], stop: Callable[[], None]) -> None:
        self.script, self.stop = script, stop
        self.requests: asyncio.Queue[Request] = asyncio.Queue()
        self.subscription: Optional[Request] = None
        self.url = ""
        self._server: Optional[asyncio.AbstractServer] = None
        self._streams = 0
        #: When the last step was over, or began to send.
        self._last = time.monotonic()
        self._begun: Set[str] = set()
        self._has_begun = asyncio.Event()

    async def __aenter__(self) -> ScriptedGateway:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Connection(self, writer).serve(reader)

    async def play(self) -> None:
        for number, step in enumerate(self.script):
            try:
                await self._step(step)
            except AssertionError as error:
                raise AssertionError(f"step {number}, {json.dumps(step)}: {error}") from None
            if step.keys() & {"pause", "stop", "begun"}:
                self._last = time.monotonic()

    def begun(self, wake: str) -> None:
        """Notes that the handler of a wake has begun."""
        self._begun.add(wake)
        self._has_begun.set()

    def check_nothing_left(self) -> None:
        left = [f"{each.method} {each.path} {each.body}" for each in iter_queue(self.requests)]
        assert not left, f"no step expects {left}"

    async def _step(self, step: Dict[str, Any]) -> None:
        if "expect" in step:
            return await self._expect(step)
        if "pause" in step:
            return await asyncio.sleep(step["pause"])
        if "stop" in step:
            return self.stop()
        if "begun" in step:
            while step["begun"] not in self._begun:
                self._has_begun.clear()
                await within(self._has_begun.wait(), "no handler began")
            return
        assert self.subscription is not None, "no stream is open"
        # A worker may read what is sent before the call that sends it returns.
        self._last = time.monotonic()
        connection, stream = self.subscription.connection, self.subscription.stream
        if "silence" in step:
            connection.is_silent = True
        elif step.get("end") == "connection":
            connection.writer.close()
        elif step.get("end") == "stream":
            connection.h2.end_stream(stream)
            connection.flush()
        elif "send" in step:
            await connection.send(stream, step["send"].encode() * step.get("times", 1), step.get("split"))
        else:
            data = step.get("data", {})
            if "wake" in step:
                time_left = {"timeLeft": 30_000, "deadline": {"now": 30_000}}
                data = {"device": DEVICE, "topic": TOPIC, "kind": "push", **time_left, **step["wake"]}
            text = f"event: {step.get('event', 'wake')}\ndata: {json.dumps(moments(data))}\n\n"
            await connection.send(stream, text.encode(), step.get("split"))

    async def _expect(self, step: Dict[str, Any]) -> None:
        method, path = step["expect"].split(" ")
        request = await within(self.requests.get(), "no request came")
        waited = time.monotonic() - self._last
        assert (request.method, request.path) == (method, path), f"{request.method} {request.path} {request.body} came"
        for name, value in step.get("query", {}).items():
            assert request.query.get(name) == [value], f"the query is {request.query}"
        for name, value in step.get("headers", {}).items():
            assert request.headers.get(name) == value, f"the headers are {request.headers}"
        for name, value in step.get("body", {}).items():
            assert request.body.get(name) == value, f"the body is {request.body}"
        assert waited >= step.get("notBefore", 0), f"it came after {waited:.2f} s"
        is_stream = path.endswith("/wakes")
        if "before" in step:
            await self._step(step["before"])
        answer = step.get("answer", {"status": 200 if is_stream else 204})
        headers = dict(answer.get("headers", {}))
        is_stream = is_stream and answer["status"] == 200 and not headers
        if is_stream:
            self._streams += 1
            self.subscription = request
            headers = {"content-type": "text/event-stream", "wakegate-stream": f"s{self._streams}"}
        self._last = time.monotonic()
        request.connection.answer(request.stream, answer["status"], headers, answer.get("body"), not is_stream)


#: Seconds that a step may take: only a worker that does nothing takes as long, on however slow a machine.
STEP_SECONDS = 60.0


async def within(awaitable: Awaitable[T], fault: str) -> T:
    try:
        return await asyncio.wait_for(awaitable, STEP_SECONDS)
    except asyncio.TimeoutError:
        raise AssertionError(f"{fault} within {STEP_SECONDS:.0f} s") from None


def iter_queue(queue: asyncio.Queue[Request]) -> List[Request]:
    return [queue.get_nowait() for _ in range(queue.qsize())]


def moments(value: Any) -> Any:
    """Replaces {"now": n} by the current time."""
    if isinstance(value, dict):
        if value.keys() == {"now"}:
            return int(time.time() * 1000) + value["now"]
        return {name: moments(each) for name, each in value.items()}
    return [moments(each) for each in value] if isinstance(value, list) else value


async def read_begun(gateway: ScriptedGateway) -> None:
    while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        gateway.begun(line.strip())


async def main(scenario: str) -> int:
    def say(**line: Any) -> None:
        print(json.dumps(line), flush=True)

    script = json.loads(Path(scenario).read_text(encoding="utf-8"))["script"]
    fault: Optional[str] = None
    async with ScriptedGateway(script, lambda: say(stop=True)) as gateway:
        reading = asyncio.ensure_future(read_begun(gateway))
        say(url=gateway.url)
        try:
            await gateway.play()
            await within(asyncio.shield(reading), "the worker did not end")
            gateway.check_nothing_left()
        except AssertionError as error:
            fault = str(error)
    say(fault=fault)
    return 1 if fault else 0


if __name__ == "__main__":
    if len(sys.argv) > 2:
        STEP_SECONDS = float(sys.argv[2])
    sys.exit(asyncio.run(main(sys.argv[1])))
