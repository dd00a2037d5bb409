"""One run of a worker: its subscription, its wakes in flight, and its end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import json
import logging
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Dict, Mapping, Optional, Set, Tuple, Union, cast

import httpx

from ._gateway import Backoff, limited, segment
from ._stream import Event, EventReader
from .errors import Release, WakeGateError, raise_unanswered
from .wakes import REASONS, Push, Result, Task, Wake

if TYPE_CHECKING:
    from .worker import Worker

log = logging.getLogger("wakegate")

Handler = Callable[[Any], Any]
Outcome = Union[Result, bool, Release]
#: The number of releases in a row after which a gateway gives a stream no more wakes.
_RELEASES = 3


@dataclass
class Timing:
    """Durations in seconds, which tests shorten."""

    silence: float = 40
    stop: float = 40
    #: The waits after the end of an open stream, and after a failure to open one.
    first_wait: Tuple[float, float] = (0.75, 2.25)
    backoff: Tuple[float, float] = (2.5, 15)
    release_backoff: Tuple[float, float] = (2, 60)
    result_backoff: Tuple[float, float] = (0.2, 5)
    #: The time from its deadline to the end of a wake about which the gateway is silent, and the time to send its
    #: result.
    grace: float = 2
    late: float = 60
    #: The maximum time to send results at the end, once no handler runs; and after a second request to stop.
    results: float = 10
    hurried_results: float = 2
    hurried: float = 5


class Session:
    def __init__(self, worker: Worker) -> None:
        self.worker, self.timing, self.gateway = worker, worker._timing, worker._gateway
        self.wakes: Dict[str, Wake] = {}
        self.is_stopping = self._hurry = self._ignores_wakes = self._is_open = self._is_renewed = False
        self._loop = asyncio.get_running_loop()
        self._slots, self._handlers, self._releases = asyncio.Semaphore(worker.slots), 0, 0
        self._jobs: Set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._subscription = asyncio.ensure_future(self._subscribe())
        self._subscription.add_done_callback(lambda _: self._changed.set())
        # The stream
        self._reading: Optional[asyncio.Task[None]] = None
        self._stream: Optional[str] = None
        self._refused: Set[str] = set()
        self._renewal: Optional[asyncio.TimerHandle] = None
        self._release_backoff = Backoff(*self.timing.release_backoff)
        self._conditions: asyncio.Queue[Tuple[str, Dict[str, Any]]] = asyncio.Queue(256)

    def call(self, function: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(function)

    async def run(self) -> None:
        teller = asyncio.ensure_future(self._tell_conditions()) if self.worker._conditions else None
        try:
            await self._changed.wait()
            await self._finish()
        except asyncio.CancelledError:
            await self._finish()
            raise
        finally:
            for wake in self.wakes.values():
                wake._stop()
                log.warning("the worker ended before the result of %s was delivered", wake)
            left = [each for each in (self._subscription, teller, *self._jobs) if each is not None]
            for each in left:
                each.cancel()
            await asyncio.wait(left, timeout=1)
        if not self._subscription.cancelled():
            self._subscription.result()

    def stop(self) -> None:
        self.is_stopping = True
        self._changed.set()

    def cancel_handlers(self) -> None:
        self._hurry = True
        self.stop()

    # The subscription

    def _path(self) -> str:
        worker = self.worker
        query = [("slots", str(worker.slots)), ("name", worker.name)]
        query += [("device", device) for device in worker.devices]
        query += [("task", name) for name in worker._tasks] + [("session", name) for name in worker._sessions]
        query += [("resource", name) for name in worker.resources]
        query += [] if worker._push else [("push", "0")]
        query += [("conditions", "1")] if worker._conditions else []
        return f"{worker._path}/wakes?" + "&".join(f"{name}={segment(value)}" for name, value in query)

    async def _subscribe(self) -> None:
        """Keeps a stream open. Ends when the worker stops; raises an error that a retry would not fix."""
        backoff, told = Backoff(*self.timing.backoff), ""
        while not self.is_stopping:
            if self.gateway.location.find():
                await self.gateway.renew()
            self._is_open = self._is_renewed = False
            self._reading = asyncio.ensure_future(self._read())
            try:
                await asyncio.wait({self._reading})
            finally:
                self._reading.cancel()
                self._stream, self._releases = None, 0
                for wake in list(self.wakes.values()):  # They are launched again elsewhere.
                    self._wake_ended(wake, "lost")
            if self._is_renewed:
                await self.gateway.renew()  # httpx does not reset an abandoned stream. Only the connection's end does.
                continue
            error = self._end_of_stream(self._reading)
            if self._is_open:
                backoff.succeeded()
                told = ""
            if self.is_stopping:
                return
            if error.code == "untrusted" and self.gateway.location.folder:
                await asyncio.sleep(1)  # A `wakegate dev` accepts connections before its folder names it.
                error.is_passing = self.gateway.location.find()
            if not error.is_passing:
                raise error
            if error.status is None:
                await self.gateway.renew()  # The connection may be dead.
            wait = random.uniform(*self.timing.first_wait) if self._is_open else backoff.failed()
            # With 503, the gateway reports when it will have restarted, but workers choose their own waits.
            wait += min(error.retry_after or 0, 300) if error.status == 429 else 0
            level, told = logging.DEBUG if error.message == told else logging.WARNING, error.message
            log.log(level, "%s; trying again in %.1f s", error, wait)
            await asyncio.sleep(wait)

    def _end_of_stream(self, reading: asyncio.Task[None]) -> WakeGateError:
        try:
            reading.result()
        except WakeGateError as error:
            return error
        except Exception as error:
            text = f"{self.gateway.url} sent what cannot be read ({error!r})"
            return WakeGateError("badAnswer", text, "see the gateway's version", is_passing=True)
        return WakeGateError("unreachable", "the gateway ended the stream", "it may be restarting", is_passing=True)

    async def _read(self) -> None:
        async with self.gateway.stream(self._path(), read=self.timing.silence) as response:
            self._stream, self._is_open = response.headers.get("wakegate-stream"), True
            log.info("subscribed to %s at %s", self.worker.topic, self.gateway.url)
            for warning in response.headers.get_list("wakegate-warning"):
                log.warning("%s warns: %s", self.gateway.url, warning)
            reader = EventReader()
            try:
                async for chunk in response.aiter_raw():
                    for event in reader.feed(chunk):
                        self._received(event)
            except httpx.TransportError as error:
                raise_unanswered(error, self.gateway.url)

    # Wakes

    def _received(self, event: Event) -> None:
        if event.name not in ("wake", "expiring", "expired", "conditions"):
            return  # An event from a later version.
        data = json.loads(event.data)
        if event.name == "conditions":
            if self._conditions.full():
                self._conditions.get_nowait()
            self._conditions.put_nowait((data.pop("device"), data))
        elif event.name == "wake":
            if not self._ignores_wakes:
                self._wake_received(data)
        elif data["wake"] in self.wakes:
            wake = self.wakes[data["wake"]]
            if event.name == "expiring":
                wake._expire(data)
            else:
                self._wake_ended(wake, data.get("reason", "deadline"))

    def _wake_received(self, data: Mapping[str, Any]) -> None:
        id, kind, handler = data["wake"], data.get("kind", "push"), self._handler(data)
        if handler is None:
            # Do not send an answer: the gateway would assume that the work was done.
            if kind not in self._refused and len(self._refused) < 16:
                self._refused.add(kind)
                log.warning("wake %s has the kind %s, which has no handler", id, kind)
            return
        if id in self.wakes:
            return
        if len(self.wakes) >= 2 * self.worker.slots + 16:
            raise ValueError("more wakes than slots")
        scheduler = self.worker.scheduler_for(data["device"])
        wake = (Push if kind == "push" else Task)(data, scheduler, lambda action, body: self._ask(id, action, body))
        self.wakes[id] = wake
        self._expect_end(wake)
        self._begin(self._handle(wake, handler))

    async def _ask(self, id: str, action: str, body: Mapping[str, Any]) -> Any:
        if id not in self.wakes or self.wakes[id]._ended is not None:
            text = "the wake has ended: its result was sent, its time is over, or its stream broke"
            raise WakeGateError("wakeEnded", text)
        path = f"/v1/wakes/{segment(id)}/{action}"
        if action == "progress":  # Lost progress is reported again, with the newest values.
            return await self.gateway.once("POST", path, body)
        return await self.gateway.call("POST", path, body, repeatable=True)

    def _handler(self, data: Mapping[str, Any]) -> Optional[Handler]:
        kind = data.get("kind", "push")
        if kind == "push":
            return self.worker._push
        handlers = self.worker._sessions if kind == "urlSession" else self.worker._tasks
        name = str(data.get("session" if kind == "urlSession" else "task"))
        dots = [place for place in range(len(name) - 2, 0, -1) if name[place] == "."]  # The closest pattern first.
        return next((handlers[each] for each in (name, *(f"{name[:dot]}.*" for dot in dots)) if each in handlers), None)

    def _expect_end(self, wake: Wake) -> None:
        left = max(0, wake.deadline + self.timing.grace - time.monotonic())
        wake._timer = self._loop.call_later(left, lambda: self._begin(self._check_end(wake)))

    async def _check_end(self, wake: Wake) -> None:
        """Ends a wake if the gateway reports nothing after its deadline."""
        if wake.deadline + self.timing.grace <= time.monotonic():
            # Another process that knows the wake may have requested more time.
            with contextlib.suppress(WakeGateError, asyncio.TimeoutError):
                await limited(wake.extend(1), self.timing.grace)
        if wake.deadline <= time.monotonic():
            self._wake_ended(wake, "deadline")
        elif wake.id in self.wakes:
            self._expect_end(wake)

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        job = asyncio.ensure_future(coroutine)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    def _wake_ended(self, wake: Wake, reason: str) -> None:
        if wake._ended is None:
            wake._ended = wake.expiration_reason = reason
            log.warning("%s was ended: %s", wake, REASONS.get(reason, reason))
            wake._stop()

    async def _handle(self, wake: Wake, handler: Handler) -> None:
        """Calls the handler of a wake, and delivers the result."""
        try:
            async with self._slots:  # Free, unless other handlers ignore their cancellation.
                if wake._ended is not None or self._hurry:
                    return
                self._handlers += 1
                try:
                    outcome = await self._outcome(wake, handler)
                finally:
                    self._handlers -= 1
                    self._note_change()
            if outcome is not None:
                if isinstance(wake, Task):
                    await wake._tell_last()
                await self._deliver(wake, outcome)
        finally:
            for each in (wake._timer, wake._reporter):
                if each is not None:
                    each.cancel()
            del self.wakes[wake.id]
            self._note_change()

    def _note_change(self) -> None:
        if self.is_stopping:
            self._changed.set()

    async def _outcome(self, wake: Wake, handler: Handler) -> Optional[Outcome]:
        """Returns the handler's result; None for a lost wake, whose push must not lose an attempt."""
        outcome: Outcome = Result.FAILED if isinstance(wake, Push) else False
        try:
            value = handler(wake) if _is_async(handler) else await _in_thread(handler, wake)
            if inspect.isawaitable(value):
                wake._handling = asyncio.ensure_future(value)
                if wake.expiring.is_set():  # The time was over before the start. It may still clean up.
                    self._loop.call_soon(wake._handling.cancel)
                await asyncio.wait({wake._handling})
                value = wake._handling.result()
            if isinstance(wake, Push) and value not in list(Result):
                text = "%s: the push handler returned %s; return Result.NEW_DATA, Result.NO_DATA or Result.FAILED"
                log.error(text, wake, None if value is None else type(value).__name__)
            else:
                return Result(value) if isinstance(wake, Push) else value is not False
        except Release as release:
            outcome = release
        except asyncio.CancelledError:
            if wake._handling is None or not wake._handling.done():  # The worker ends.
                wake._stop()
                raise
        except Exception:
            if wake._ended != "lost":
                log.exception("the handler of %s failed", wake)
        return None if wake._ended == "lost" else outcome

    async def _deliver(self, wake: Wake, outcome: Outcome) -> None:
        """Sends a result until the gateway has accepted it, or it is too late."""
        backoff, late = Backoff(*self.timing.result_backoff), 0
        path, body = f"/v1/wakes/{segment(wake.id)}", cast(Dict[str, Any], {"success": outcome})
        if isinstance(outcome, Release):
            path, body = path + "/release", {"reason": outcome.reason}
        elif isinstance(outcome, Result):
            body = {"result": outcome.value}
        while True:
            try:
                await self.gateway.once("POST", path, body)
                break
            except WakeGateError as error:
                late += wake._ended is not None
                wait = backoff.failed() + ((error.retry_after or 0) if error.status == 429 else 0)
                if not error.is_passing or late >= 2 or time.monotonic() + wait > wake.deadline + self.timing.late:
                    log.log(logging.DEBUG if wake._ended else logging.WARNING, "%s has no result: %s", wake, error)
                    return
                await asyncio.sleep(wait)
        log.debug("%s: %s", wake, outcome)
        if isinstance(outcome, Release):
            self._released(outcome)
        else:
            self._releases = 0
            self._release_backoff.succeeded()

    def _released(self, release: Release) -> None:
        """Opens a new stream after three released wakes in a row, because the gateway sends no more wakes on the old
        one."""
        log.warning("a wake was given back: %s", release.reason)
        self._releases += 1
        if self._releases >= _RELEASES and self._renewal is None:
            self._renewal = self._loop.call_later(self._release_backoff.failed(), self._renew)

    def _renew(self) -> None:
        self._renewal = None
        if self._reading is None or self.is_stopping or self._releases < _RELEASES:
            return
        if self.wakes:
            self._renewal = self._loop.call_later(0.1, self._renew)
        else:
            self._is_renewed = True
            self._reading.cancel()

    async def _tell_conditions(self) -> None:
        handler = self.worker._conditions
        assert handler is not None
        while True:
            change = await self._conditions.get()
            try:
                value = handler(*change) if _is_async(handler) else await _in_thread(handler, *change)
                if inspect.isawaitable(value):
                    await value
            except Exception:
                log.exception("the handler of conditions failed")

    # The end

    async def _finish(self) -> None:
        """Takes no more wakes, waits for handlers and delivers results, within the time limit."""
        self.is_stopping = True
        now, limit = time.monotonic(), self.timing.stop
        results, is_cancelled, is_hurried = min(self.timing.results, limit / 4), False, False
        cancel_at, end, idle = now + limit - results, now + limit, None
        draining = asyncio.ensure_future(self._drain())
        try:
            while self.wakes or not self._subscription.done():
                now = time.monotonic()
                if self._hurry and not is_hurried:
                    is_hurried, cancel_at, end = True, now, min(end, now + self.timing.hurried)
                    results = min(results, self.timing.hurried_results)
                idle = None if self._handlers else (idle or now)
                moment = min(end, idle + results) if idle else (end if is_cancelled else cancel_at)
                if now >= moment:
                    if is_cancelled or not self._handlers:
                        return
                    is_cancelled = True
                    for wake in self.wakes.values():
                        wake._stop()
                    continue
                if self._ignores_wakes and not self.wakes:
                    self._subscription.cancel()
                with contextlib.suppress(asyncio.TimeoutError):
                    await limited(self._changed.wait(), moment - now)
                self._changed.clear()
        finally:
            draining.cancel()

    async def _drain(self) -> None:
        """Asks the gateway for no more wakes; it ends the stream after the last result."""
        while self._stream is not None:
            try:
                return await self.gateway.once("POST", f"/v1/streams/{segment(self._stream)}/drain")  # type: ignore
            except WakeGateError as error:
                # Further wakes are lost with the stream, and are launched elsewhere.
                self._ignores_wakes = True
                self._changed.set()
                if not error.is_passing:
                    return
            await asyncio.sleep(1)
        self._ignores_wakes = True
        self._changed.set()


def _is_async(handler: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))


def _in_thread(function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
    """Calls a function in a separate thread, for which the end of the program does not wait."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()  # From here on a cancellation leaves the result to the thread.
    context = contextvars.copy_context()

    def called() -> None:
        try:
            value = context.run(function, *arguments)
        except BaseException as error:  # Futures reject StopIteration. A handler must not end the program.
            is_usual = isinstance(error, Exception) and not isinstance(error, StopIteration)
            future.set_exception(error if is_usual else RuntimeError(repr(error)))
        else:
            future.set_result(value)

    threading.Thread(target=called, name="wakegate-handler", daemon=True).start()
    return asyncio.wrap_future(future)
