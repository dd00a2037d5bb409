"""Background transfers: the client of the agent `wakegate transfers`, over its unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import re
import time
from typing import Any, AsyncGenerator, AsyncIterator, Dict, List, Mapping, Optional, Set, Tuple, TypeVar

from ._gateway import EventReader, Gateway, backoff, segment
from .errors import TransferError, WakeGateError
from .location import Location

T = TypeVar("T")
#: A transfer in the format of the agent: transfer (its id), kind, url, state, bytes, total, note, error, taken ...
Transfer = Dict[str, Any]
_ENDS = ("finished", "failed", "cancelled")


class BackgroundSession:
    """A session of the transfer agent, whose transfers continue without this process. Raises TransferError.

        session = BackgroundSession("com.example.app.films", device=token, topic="com.example.app")
        await session.download("https://example.com/film.mp4", to="/srv/films/film.mp4")

    Settings are those of the agent's `PUT /v1/sessions/<id>`: device, topic, discretionary, sendsLaunchEvents ... The
    agent is found by WAKEGATE_TRANSFERS, or at the default address of this user's agent.
    """

    def __init__(self, identifier: str, *, agent: Optional[str] = None, **settings: Any) -> None:
        self.identifier, self._settings = identifier, settings
        location = Location(f"unix:{_socket(agent)}", variables={}, is_http2=False)
        self._agent, self._patient = (Gateway(location, "transfers agent", timeout) for timeout in (30, None))
        self._path = f"/v1/sessions/{segment(identifier)}"
        self._is_prepared = self._was_there = False

    async def add_download(self, url: str, **members: Any) -> str:
        """Adds a download, and returns its id. Members: headers, earliestBegin, sha256, bytesMax, note ..."""
        return str((await self._ask("POST", "/transfers", {"kind": "download", "url": url, **members}))["transfer"])

    async def add_upload(self, file: str, url: str, **members: Any) -> str:
        """Adds an upload, and returns its id."""
        body = {"kind": "upload", "url": url, "file": os.path.abspath(file), **members}
        return str((await self._ask("POST", "/transfers", body))["transfer"])

    async def download(self, url: str, to: str, *, replacing: bool = False, **members: Any) -> Transfer:
        """Downloads a file to a path. Resumes an earlier download of the same URL to the same path."""
        note = members.setdefault("note", os.path.abspath(to))
        usable = [each for each in await self.transfers() if each["state"] not in _ENDS[1:] and not each["taken"]]
        listed = re.sub("^([^/?#]*://)[^/?#]*@", r"\1", url)  # The agent lists URLs without credentials.
        begun = [each["transfer"] for each in usable if (each["url"], each["note"]) == (listed, note)]
        id = begun[0] if begun else await self.add_download(url, **members)
        await self.wait(id)
        return await self.take(id, to, replacing=replacing)

    async def transfers(self, state: Optional[str] = None) -> List[Transfer]:
        """Returns the session's transfers, or those in one state: waiting, running, finished, failed, cancelled."""
        found: List[Transfer] = []
        path, after = "/transfers?limit=1000" + (f"&state={state}" if state else ""), ""
        while True:
            answer = await self._ask("GET", path + after)
            found += answer["transfers"]
            if not answer.get("next"):
                return found
            after = f"&after={answer['next']}"

    async def finished_downloads(self) -> List[Transfer]:
        """Returns the finished downloads whose files were not taken."""
        return [each for each in await self.transfers("finished") if each["kind"] == "download" and not each["taken"]]

    async def transfer(self, id: str) -> Transfer:
        return dict(await self._ask("GET", f"/transfers/{segment(id)}"))

    async def take(self, id: str, to: str, *, replacing: bool = False) -> Transfer:
        """Moves the file of a finished download to its place."""
        body = {"to": os.path.abspath(to), **({"replace": True} if replacing else {})}
        return dict(await self._ask("POST", f"/transfers/{segment(id)}/take", body, limited=False))

    async def cancel(self, id: str, *, keep: bool = False) -> None:
        """Cancels a transfer; `keep` keeps the received bytes for a later transfer of the same URL."""
        await self._ask("DELETE", f"/transfers/{segment(id)}{'?keep=1' if keep else ''}")

    async def wait(self, id: str) -> Transfer:
        """Waits until a transfer has finished, even if the agent restarts. If the session's last transfer ends in that
        time, no wake is requested: call `finished_downloads` after the wait to take the files of other transfers."""
        async with _closing(self._events()) as events:
            async for name, data in events:
                if name == "state" or data.get("transfer") == id and name in _ENDS:
                    found = await self.transfer(id)
                    if found["state"] in _ENDS:
                        break
        if found["state"] == "finished":
            return found
        why = (found.get("error") or {}).get("message") or "it was cancelled"
        code = "transferFailed" if found["state"] == "failed" else "transferCancelled"
        raise TransferError(code, f"the transfer of {found['url']} has {found['state']}: {why}")

    async def events(self) -> AsyncIterator[Tuple[str, Transfer]]:
        """Yields events: progress (at most four a second), finished, failed, cancelled and idle. It begins with the
        transfers that have ended before and were not taken, and continues when the agent restarts. While a program
        reads, no wake is requested."""
        told: Set[str] = set()
        is_first = True
        async with _closing(self._events()) as events:
            async for name, data in events:
                if name == "state":
                    for each in await self.transfers():
                        is_news = each["state"] == "failed" or each["state"] == "finished" and not each["taken"]
                        if each["state"] in _ENDS and each["transfer"] not in told:
                            told.add(each["transfer"])
                            if is_news or not is_first:
                                yield each["state"], each
                    is_first = False
                elif name not in _ENDS or data["transfer"] not in told:
                    told.update([data["transfer"]] if name in _ENDS else [])
                    yield name, data

    __aiter__ = events

    async def _events(self) -> AsyncGenerator[Tuple[str, Dict[str, Any]], None]:
        """Yields the agent's events, from as many streams as necessary."""
        waits = backoff(0.1, 5)
        while True:
            await self._ask("GET", "")
            try:
                async with self._agent.stream(f"{self._path}/events", read=45) as response:  # A comment every 15 s.
                    reader = EventReader(1 << 20)
                    async for chunk in response.aiter_raw():
                        waits = backoff(0.1, 5)
                        for event in reader.feed(chunk):
                            yield event.name, json.loads(event.data)
            except WakeGateError as error:
                if error.status is not None:  # Refused, for example because of too many streams: poll instead.
                    yield "state", {}
            await asyncio.sleep(next(waits))

    async def _ask(self, method: str, rest: str, body: Optional[Mapping[str, Any]] = None, limited: bool = True) -> Any:
        agent, began = self._agent if limited else self._patient, time.monotonic()
        while True:
            try:
                if not self._is_prepared:
                    await agent.call("PUT", self._path, self._settings)
                    self._is_prepared = self._was_there = True
                return await agent.call(method, self._path + rest, body)
            except WakeGateError as error:
                # A known agent may take a minute to restart. A request that may have had its effect is not sent again.
                is_harmless = method != "POST" or not error.may_have_arrived
                is_absent = self._was_there and error.is_passing and is_harmless and error.status != 429
                is_forgotten = self._is_prepared and error.reason == "UnknownSession"
                if not (is_absent or is_forgotten) or time.monotonic() - began > 60:
                    raise TransferError.from_error(error) from error
                self._is_prepared = False


@contextlib.asynccontextmanager
async def _closing(events: AsyncGenerator[T, None]) -> AsyncIterator[AsyncIterator[T]]:
    """Closes a generator immediately instead of at the end of its event loop."""
    try:
        yield events
    finally:
        await events.aclose()


def _socket(agent: Optional[str]) -> str:
    named = agent or os.environ.get("WAKEGATE_TRANSFERS")
    if named:
        path = named.removeprefix("unix:")
        if "://" in path or len(path.encode()) > 107:
            remedy = "write unix:/PATH, the path of its socket, of at most 107 bytes"
            raise TransferError("badArgument", f'the agent is "{named}"', remedy)
        return path
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    candidates = [f"{folder}/wakegate/transfers.sock"] * folder.startswith("/")
    with contextlib.suppress(KeyError):  # A container's user may have no name.
        candidates.append(f"/run/wakegate-transfers/{pwd.getpwuid(os.geteuid()).pw_name}/transfers.sock")
    if not candidates:
        remedy = "name the agent's socket in WAKEGATE_TRANSFERS"
        raise TransferError("badArgument", "this user has neither a name nor XDG_RUNTIME_DIR", remedy)
    return next((each for each in candidates if os.path.exists(each)), candidates[0])
