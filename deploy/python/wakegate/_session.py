"""One run of a worker: its subscription, its wakes in flight, and its end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import json
import logging
import math
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Coroutine, Dict, Mapping, Optional, Set, Tuple
from urllib.parse import quote, urlencode

from ._gateway import Event, EventReader, backoff, integer, limited, segment
from .errors import Release, WakeGateError
from .wakes import REASONS, Push, Result, Task, Wake, log

if TYPE_CHECKING:
    from .worker import Worker

Handler = Callable[[Any], Any]
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
    #: The time from its deadline to the end of a wake about which the gateway is silent, and to send its result.
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
        self.is_stopping = self._hurry = self._ignores_wakes = self._is_open = False
        self._loop = asyncio.get_running_loop()
        self._slots, self._handlers = asyncio.Semaphore(worker.slots), 0
        self._jobs: Set[asyncio.Task[None]] = set()
        self._conditions: asyncio.Queue[Tuple[str, Dict[str, Any]]] = asyncio.Queue(256)
        #: The time of the monotonic clock at which the session ends, and the maximum time to send results.
        self._end, self._results = math.inf, min(self.timing.results, self.timing.stop / 4)
        # The stream
        self._reading: asyncio.Task[WakeGateError]
        self._stream: Optional[str] = None
        self._refused: Set[str] = set()
        self._releases, self._release_waits = 0, backoff(*self.timing.release_backoff)
        self._changed = asyncio.Event()
        self._subscription = asyncio.ensure_future(self._subscribe())
        self._subscription.add_done_callback(lambda _: self._stop())

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs a coroutine until it ends, or the session does."""
        job = asyncio.ensure_future(coroutine)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job

    async def run(self) -> None:
        if self.worker._conditions:
            self._begin(self._tell_conditions(self.worker._conditions))
        try:
            await self._ended()
        except asyncio.CancelledError:
            self._stop()
            await self._ended()
            raise
        finally:
            for wake in self.wakes.values():
                wake._stop()
                log.warning("the worker ended before the result of %s was delivered", wake)
            left = {self._subscription, *self._jobs}
            for each in left:
                each.cancel()
            await asyncio.wait(left, timeout=1)
        if not self._subscription.cancelled():
            self._subscription.result()

    # The subscription

    def _path(self) -> str:
        worker = self.worker
        query = {
            "slots": worker.slots, "name": worker.name, "device": worker.devices, "task": list(worker._tasks),
            "session": list(worker._sessions), "resource": worker.resources, "push": [] if worker._push else 0,
            "conditions": 1 if worker._conditions else [],
        }
        return f"{worker._path}/wakes?{urlencode(query, doseq=True, quote_via=quote)}"

    async def _subscribe(self) -> None:
        """Keeps a stream open. Ends when the worker stops; raises an error that a retry would not fix."""
        waits, told, location = backoff(*self.timing.backoff), "", self.gateway.location
        while not self.is_stopping:
            if location.find():
                await self.gateway.renew()
            self._is_open = False
            self._reading = asyncio.ensure_future(self._read())
            try:
                await asyncio.wait({self._reading})
            finally:
                self._reading.cancel()
                self._stream, self._releases = None, 0
                for wake in self.wakes.values():  # They are launched again elsewhere.
                    self._wake_ended(wake, "lost")
            if self._reading.cancelled():
                # By _renew. httpx does not reset an abandoned stream. Only the connection's end does.
                await self.gateway.renew()
                continue
            error = self._reading.result()
            if self._is_open:
                waits, told = backoff(*self.timing.backoff), ""
            if self.is_stopping:
                return
            if error.code == "untrusted" and location.folder:
                await asyncio.sleep(1)  # A `wakegate dev` accepts connections before its folder names it.
                error.is_passing = location.find()
            if not error.is_passing:
                raise error
            if error.status is None:
                await self.gateway.renew()  # The connection may be dead.
            wait = random.uniform(*self.timing.first_wait) if self._is_open else next(waits)
            # With 503, the gateway reports when it will have restarted, but workers choose their own waits.
            wait += min(error.busy_wait, 300)
            level, told = logging.DEBUG if error.message == told else logging.WARNING, error.message
            log.log(level, "%s; trying again in %.1f s", error, wait)
            await asyncio.sleep(wait)

    async def _read(self) -> WakeGateError:
        """Reads a stream to its end, and returns the reason why it ended."""
        try:
            async with self.gateway.stream(self._path(), read=self.timing.silence) as response:
                self._stream, self._is_open = response.headers.get("wakegate-stream"), True
                log.info("subscribed to %s at %s", self.worker.topic, self.gateway.url)
                for warning in response.headers.get_list("wakegate-warning"):
                    log.warning("%s warns: %s", self.gateway.url, warning)
                reader = EventReader()
                async for chunk in response.aiter_raw():
                    for event in reader.feed(chunk):
                        self._received(event)
        except WakeGateError as error:
            return error
        except Exception as error:
            text = f"{self.gateway.url} sent what cannot be read ({error!r})"
            return WakeGateError("badAnswer", text, "see the gateway's version", is_passing=True)
        return WakeGateError("unreachable", "the gateway ended the stream", "it may be restarting", is_passing=True)

    # Wakes

    def _received(self, event: Event) -> None:
        if event.name not in ("wake", "expiring", "expired", "conditions"):
            return  # An event from a later version.
        data = json.loads(event.data, parse_int=integer)
        if event.name == "conditions":
            if self._conditions.full():
                self._conditions.get_nowait()
            self._conditions.put_nowait((data.pop("device"), data))
        elif event.name == "wake":
            self._wake_received(data)
        elif data["wake"] in self.wakes and event.name == "expiring":
            self.wakes[data["wake"]]._expire(data)
        elif data["wake"] in self.wakes:
            self._wake_ended(self.wakes[data["wake"]], data.get("reason", "deadline"))

    def _wake_received(self, data: Mapping[str, Any]) -> None:
        id, kind, handler = data["wake"], data.get("kind", "push"), self._handler(data)
        if self._ignores_wakes or id in self.wakes:
            return
        if handler is None:
            # Do not send an answer: the gateway would assume that the work was done.
            if kind not in self._refused and len(self._refused) < 16:
                self._refused.add(kind)
                log.warning("wake %s has the kind %s, which has no handler", id, kind)
            return
        if len(self.wakes) >= 2 * self.worker.slots + 16:
            raise ValueError("more wakes than slots")
        self.wakes[id] = wake = (Push if kind == "push" else Task)(data, self.gateway)
        if isinstance(wake, Task) and kind == "continued":
            wake._reporter = self._begin(wake._report())  # Before the handler, so that it misses no change.
        self._begin(self._handle(wake, handler))

    def _handler(self, data: Mapping[str, Any]) -> Optional[Handler]:
        kind = data.get("kind", "push")
        if kind == "push":
            return self.worker._push
        handlers = self.worker._sessions if kind == "urlSession" else self.worker._tasks
        name = str(data.get("session" if kind == "urlSession" else "task"))
        dots = [place for place in range(len(name) - 2, 0, -1) if name[place] == "."]  # The closest pattern first.
        return next((handlers[each] for each in (name, *(f"{name[:dot]}.*" for dot in dots)) if each in handlers), None)

    async def _watch(self, wake: Wake) -> None:
        """Ends a wake if the gateway reports nothing after its deadline."""
        while not wake._has_ended:
            await asyncio.sleep(max(0, wake.deadline + self.timing.grace - time.monotonic()))
            if wake.deadline + self.timing.grace <= time.monotonic():
                # Another process that knows the wake may have requested more time.
                try:
                    await limited(wake.extend(1), self.timing.grace)
                except Exception as error:
                    # Only progress moves the deadline of a continued task. This answer means that the task continues.
                    if wake.kind == "continued" and getattr(error, "code", None) == "extensionLimitReached":
                        wake.deadline = max(wake.deadline, time.monotonic())
                        continue
                if wake.deadline <= time.monotonic():
                    self._wake_ended(wake, "deadline")

    def _wake_ended(self, wake: Wake, reason: str) -> None:
        if not wake._has_ended:
            wake._has_ended, wake.expiration_reason = True, reason
            log.warning("%s was ended: %s", wake, REASONS.get(reason, reason))
            wake._stop()

    async def _handle(self, wake: Wake, handler: Handler) -> None:
        """Calls the handler of a wake, and delivers the result."""
        watching = self._begin(self._watch(wake))
        try:
            async with self._slots:  # Free, unless other handlers ignore their cancellation.
                if wake._has_ended or self._hurry:
                    return
                self._handlers += 1
                try:
                    body = await self._outcome(wake, handler)
                finally:
                    self._handlers -= 1
                    self._changed.set()
            if body is not None:
                if isinstance(wake, Task):
                    await wake._tell_last()
                await self._deliver(wake, body)
        finally:
            wake._has_ended = True
            watching.cancel()
            if wake._reporter is not None:
                wake._reporter.cancel()
            del self.wakes[wake.id]
            self._changed.set()

    async def _outcome(self, wake: Wake, handler: Handler) -> Optional[Dict[str, Any]]:
        """Returns the body of the handler's result; None for a lost wake, whose push must not lose an attempt."""
        body: Dict[str, Any] = {"result": "failed"} if isinstance(wake, Push) else {"success": False}
        try:
            value = await _call(handler, wake)
            if inspect.isawaitable(value):
                wake._handling = asyncio.ensure_future(value)
                if wake.expiring.is_set():  # The time was over before the start. It may still clean up.
                    self._loop.call_soon(wake._handling.cancel)
                await asyncio.wait({wake._handling})
                value = wake._handling.result()
            if isinstance(wake, Task):
                return {"success": value is not False}
            if value in list(Result):
                return {"result": Result(value).value}
            text = "%s: the push handler returned %s; return Result.NEW_DATA, Result.NO_DATA or Result.FAILED"
            log.error(text, wake, None if value is None else type(value).__name__)
        except Release as release:
            body = {"reason": release.reason}
        except asyncio.CancelledError:
            if wake._handling is None or not wake._handling.done():  # The worker ends.
                wake._stop()
                raise
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # A handler must not end without a result: pytest.fail() raises no Exception.
            if wake.expiration_reason != "lost":
                log.exception("the handler of %s failed", wake)
        return None if wake.expiration_reason == "lost" else body

    async def _deliver(self, wake: Wake, body: Mapping[str, Any]) -> None:
        """Sends a result until the gateway has accepted it, or it is too late."""
        late, is_release = 0, "reason" in body
        path = wake._path + ("/release" if is_release else "")
        for wait in backoff(*self.timing.result_backoff):
            try:
                await self.gateway.once("POST", path, body)
                break
            except WakeGateError as error:
                late += wake._has_ended
                wait += error.busy_wait
                if not error.is_passing or late >= 2 or time.monotonic() + wait > wake.deadline + self.timing.late:
                    log.log(logging.DEBUG if wake._has_ended else logging.WARNING, "%s has no result: %s", wake, error)
                    return
                await asyncio.sleep(wait)
        log.debug("%s: %s", wake, body)
        if not is_release:
            self._releases = 0
            self._release_waits = backoff(*self.timing.release_backoff)
            return
        log.warning("a wake was given back: %s", body["reason"])
        self._releases += 1
        if self._releases == _RELEASES:
            self._begin(self._renew())

    async def _renew(self) -> None:
        """Opens a new stream, because the gateway sends no more wakes on one that has released several in a row."""
        await asyncio.sleep(next(self._release_waits))
        while self.wakes and self._releases >= _RELEASES:
            await asyncio.sleep(0.1)
        if self._releases >= _RELEASES and not self.is_stopping:
            self._reading.cancel()

    async def _tell_conditions(self, handler: Callable[[str, Dict[str, Any]], Any]) -> None:
        while True:
            change = await self._conditions.get()
            try:
                value = await _call(handler, *change)
                if inspect.isawaitable(value):  # Its own cancellation must not end this loop.
                    (value,) = await asyncio.gather(value, return_exceptions=True)
                    if isinstance(value, BaseException):
                        log.error("the handler of conditions failed", exc_info=value)
            except Exception:
                log.exception("the handler of conditions failed")

    # The end

    def stop(self, hurries: bool = False) -> None:
        """Takes no more wakes; in a hurry, it also cancels handlers. May be called from any thread."""
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(self._stop, hurries)

    def _stop(self, hurries: bool = False) -> None:
        if not self.is_stopping:
            self.is_stopping, self._end = True, time.monotonic() + self.timing.stop
            self._begin(self._drain())
            self._begin(self._stop_handlers(self.timing.stop - self._results))
        if hurries and not self._hurry:
            self._hurry, self._end = True, min(self._end, time.monotonic() + self.timing.hurried)
            self._results = min(self._results, self.timing.hurried_results)
            self._begin(self._stop_handlers(0))
        self._changed.set()

    async def _stop_handlers(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        for wake in self.wakes.values():
            wake._stop()

    async def _ended(self) -> None:
        """Waits until handlers have ended and results are delivered, or the time for that is over."""
        idle: Optional[float] = None
        while self.wakes or not self._subscription.done():
            now = time.monotonic()
            idle = None if self._handlers or not self.is_stopping else idle or now
            left = min(self._end, idle + self._results if idle else math.inf) - now
            if left <= 0:
                return
            if self._ignores_wakes and not self.wakes:
                self._subscription.cancel()
            timer = self._loop.call_later(left, self._changed.set)
            await self._changed.wait()
            timer.cancel()
            self._changed.clear()

    async def _drain(self) -> None:
        """Asks the gateway to send no more wakes; it ends the stream after the last result."""
        while self._stream is not None:
            try:
                await self.gateway.once("POST", f"/v1/streams/{segment(self._stream)}/drain")
                return
            except WakeGateError as error:
                self._ignore_wakes()
                if not error.is_passing:
                    return
            await asyncio.sleep(1)
        self._ignore_wakes()

    def _ignore_wakes(self) -> None:
        """Handles no more wakes: they are lost with the stream, and are launched elsewhere."""
        self._ignores_wakes = True
        self._changed.set()


async def _call(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a handler: a sync one in a thread of its own, for which the end of the program does not wait."""
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None)):
        return handler(*arguments)
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()  # From here on a cancellation leaves the result to the thread.
    context = contextvars.copy_context()

    def call() -> None:
        try:
            future.set_result(context.run(handler, *arguments))
        except BaseException as error:  # Futures reject StopIteration. A handler must not end the program.
            # asyncio would take the other CancelledError for a cancellation of this worker's task.
            unusual = (StopIteration, concurrent.futures.CancelledError)
            is_usual = isinstance(error, Exception) and not isinstance(error, unusual)
            future.set_exception(error if is_usual else RuntimeError(repr(error)))

    threading.Thread(target=call, name="wakegate-handler", daemon=True).start()
    return await asyncio.wrap_future(future)
