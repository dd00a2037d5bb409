"""Requests to the gateway and its events: one HTTP/2 connection, limited retries, errors with a remedy."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from typing import Any, AsyncIterator, Awaitable, Dict, Iterator, Mapping, NamedTuple, Optional, TypeVar
from urllib.parse import quote

import httpx

from .errors import WakeGateError, raise_unanswered
from .location import Location

#: The maximum number of tries for a request that does not reach the gateway, or finds it busy.
TRIES = 5
#: The maximum wait requested by the gateway after which a request is retried automatically, in seconds.
RETRY_WAIT_MAX = 5.0
T = TypeVar("T")


async def limited(awaitable: Awaitable[T], seconds: Optional[float]) -> T:
    """Returns an awaitable's result, or raises asyncio.TimeoutError after this number of seconds (None: never).

    asyncio.wait_for does the same, but before Python 3.12 it ignores a cancellation that arrives with the result.
    """
    task = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    if task.cancelled():
        raise asyncio.TimeoutError
    return task.result()


async def attempted(awaitable: Awaitable[object], seconds: float) -> None:
    """Waits for an awaitable for at most this number of seconds, and ignores its failure."""
    with contextlib.suppress(Exception):
        await limited(awaitable, seconds)


def segment(text: str) -> str:
    """Returns a text as one segment of a path."""
    return quote(text, safe="")


def backoff(first: float, last: float) -> Iterator[float]:
    """Yields waits that double up to a limit, each drawn at random from its upper half."""
    while True:
        yield random.uniform(first / 2, first)
        first = min(2 * first, last)


class Event(NamedTuple):
    name: str
    data: str


class EventReader:
    """Divides a stream into events. Lines end only at a line feed (or CR LF), not at other Unicode line breaks."""

    def __init__(self, limit: int = 1 << 16) -> None:
        self._limit, self._rest = limit, b""

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yields the events that end in a chunk. Raises ValueError if the unfinished event exceeds the limit."""
        *texts, self._rest = re.split(rb"\n\r?\n", self._rest + chunk)
        for text in texts:
            fields = [line.removesuffix(b"\r").partition(b":") for line in text.split(b"\n")]
            names = [value.removeprefix(b" ") for field, _, value in fields if field == b"event"]
            data = [value.removeprefix(b" ") for field, _, value in fields if field == b"data"]
            if data:
                name = (names or [b""])[-1] or b"message"
                yield Event(name.decode("utf-8", "replace"), b"\n".join(data).decode("utf-8", "replace"))
        if len(self._rest) > self._limit:
            raise ValueError(f"an event has more than {self._limit} bytes")


class Gateway:
    """Sends requests to a gateway. `timeout` is the maximum time for an answer, in seconds."""

    def __init__(self, location: Location, who: str = "gateway", timeout: Optional[float] = 10) -> None:
        self.location, self.who, self.timeout = location, who, timeout
        #: The event loop whose requests share a connection; every other request opens its own.
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self._client: Optional[httpx.AsyncClient] = None

    @property
    def url(self) -> str:
        return f"unix:{self.location.socket}" if self.location.socket else self.location.url

    async def renew(self) -> None:
        """Closes the shared connection, if there is one; the next request opens another."""
        client, self._client = self._client, None
        if client is not None:
            await attempted(client.aclose(), 1)

    @contextlib.asynccontextmanager
    async def _used(self) -> AsyncIterator[httpx.AsyncClient]:
        client, is_kept = self._client, self.loop is asyncio.get_running_loop()
        if client is None or not is_kept:
            transport = self.location.transport()
            client = httpx.AsyncClient(base_url=self.location.url, transport=transport, timeout=self.timeout)
        if is_kept:
            self._client = client
            yield client
        else:
            async with client:
                yield client

    @contextlib.asynccontextmanager
    async def stream(self, path: str, read: float) -> AsyncIterator[httpx.Response]:
        """Opens a stream of events, which may be silent for `read` seconds. Raises an error for any answer other
        than 200, and for the connection's end."""
        headers = {**self.location.headers(), "accept": "text/event-stream", "accept-encoding": "identity"}
        async with self._used() as client:
            request = client.build_request("GET", path, headers=headers, timeout=httpx.Timeout(10, read=read))
            try:
                response = await limited(client.send(request, stream=True), 15)
            except Exception as error:  # The underlying libraries raise more than httpx.TransportError.
                raise_unanswered(error, self.url, self.who)
            try:
                if response.status_code != 200:
                    await attempted(response.aread(), 10)
                    raise self._refusal(response)
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    text, remedy = f"what answers at {self.url} sends no events", f"see whether it is a {self.who}"
                    raise WakeGateError("badAnswer", text, remedy)
                self.location.accepted()
                yield response
            except httpx.TransportError as error:
                raise_unanswered(error, self.url, self.who)
            finally:
                await attempted(response.aclose(), 1)

    async def once(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None) -> Any:
        """Sends a request once, and returns the JSON of its answer, or None for an answer without a body."""
        headers = self.location.headers()
        async with self._used() as client:
            try:
                response = await limited(client.request(method, path, json=body, headers=headers), self.timeout)
            except Exception as error:
                raise_unanswered(error, self.url, self.who)
        if not response.is_success:
            raise self._refusal(response)
        self.location.accepted()
        return _json(response)

    async def call(self, method: str, path: str, body: Any = None, repeatable: bool = False, tries: int = TRIES) -> Any:
        """Sends a request, with limited retries. A request that may have arrived is retried only if that does no
        harm."""
        for number, wait in enumerate(backoff(0.2, 5), 1):
            try:
                return await self.once(method, path, body)
            except WakeGateError as error:
                is_harmless = method != "POST" or repeatable or not error.may_have_arrived
                if number == tries or not error.is_passing or not is_harmless or error.busy_wait > RETRY_WAIT_MAX:
                    raise
                await asyncio.sleep(max(wait, error.busy_wait))

    def _refusal(self, response: httpx.Response) -> WakeGateError:
        body, status, after = _json(response), response.status_code, response.headers.get("retry-after", "")
        is_passing = status == 429 or status >= 500 and status != 507 or self.location.may_pass(status)
        fields: Dict[str, Any] = {"status": status, "is_passing": is_passing}
        if not isinstance(body, dict) or not isinstance(body.get("reason"), str):
            remedy = f"see whether the address is that of a {self.who}"
            return WakeGateError("badAnswer", f"the answer is {status} without a reason", remedy, **fields)
        ends = {"ExtensionLimitReached": "extensionLimitReached", "WakeEnded": "wakeEnded", "UnknownWake": "wakeEnded"}
        code, text = ends.get(body["reason"], "refused"), f"the {self.who} answered {status} {body['reason']}"
        fields.update(reason=body["reason"], retry_after=float(after) if after.isdecimal() else None)
        fields["busy_wait"] = fields["retry_after"] or 0 if status == 429 else 0
        return WakeGateError(code, text, str(body.get("message", "")), **fields)


def integer(text: str) -> Any:
    """Parses an integer of JSON. Python refuses to parse one with more than 4,300 digits; it becomes infinite."""
    return int(text) if len(text) <= 4300 else float(text)


def _json(response: httpx.Response) -> Any:
    try:
        return response.json() if response.content else None
    except (ValueError, httpx.ResponseNotRead):
        return None
