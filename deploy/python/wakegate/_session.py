"""One run of a worker: its subscription, the wakes in its hands, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import json
import logging
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Mapping, Optional, Set, Tuple, Union, cast

import httpx

from ._gateway import Backoff, segment
from ._stream import Event, EventReader, EventTooLarge
from .errors import Release, WakeGateError, raise_unanswered
from .wakes import Push, Result, Task, Wake

if TYPE_CHECKING:
    from .worker import Worker

log = logging.getLogger("wakegate")

Outcome = Union[Result, bool, Release]
#: Releases in a row after which a gateway gives a stream no more wakes.
_RELEASES = 3


@dataclass
class Timing:
    """Durations in seconds. Tests shorten them."""

    silence: float = 40
    stop: float = 40
    #: The wait after the end of a stream that was open.
    first_wait: Tuple[float, float] = (0.75, 2.25)
    backoff: Tuple[float, float] = (2.5, 15)
    release_backoff: Tuple[float, float] = (2, 60)
    result_backoff: Tuple[float, float] = (0.2, 5)
    #: How long after its deadline a wake without a word from the gateway is taken for expired.
    grace: float = 2
    #: How long after its deadline a result is still sent.
    late: float = 60
    #: How long results are sent once no handler runs, in the end, and after a second request to stop.
    results: float = 10
    hurried_results: float = 2
    hurried: float = 5


class _Active:
    """A wake in the worker's hands."""

    def __init__(self, wake: Wake, handler: Callable[[Any], Any]) -> None:
        self.wake, self.handler = wake, handler
        #: expired or lost, once the gateway has ended it.
        self.ended: Optional[str] = None
        self.handling: Optional[asyncio.Future[Any]] = None
        self.is_sync = False
        self.timer: Optional[asyncio.TimerHandle] = None

    def stop_handler(self) -> None:
        self.wake.expiring.set()
        if self.handling is not None and not self.is_sync:
            self.handling.cancel()


class Session:
    def __init__(self, worker: Worker) -> None:
        self.worker, self.timing, self.gateway = worker, worker._timing, worker._gateway
        self.wakes: Dict[str, _Active] = {}
        self.is_stopping = False
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(worker.slots)
        self._handlers = 0
        self._jobs: Set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._hurry = False
        self._subscription: Optional[asyncio.Task[None]] = None
        self._reading: Optional[asyncio.Task[None]] = None
        self._stream: Optional[str] = None
        self._heard = 0.0
        self._silent = False
        self._opened = False
        self._ignores_wakes = False
        self._refused: Set[str] = set()
        self._releases = 0
        self._renewing: Optional[asyncio.TimerHandle] = None
        self._release_backoff = Backoff(*self.timing.release_backoff)
        self._conditions: asyncio.Queue[Tuple[str, Dict[str, Any]]] = asyncio.Queue(256)

    def call(self, function: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(function)

    async def run(self) -> None:
        self._subscription = asyncio.ensure_future(self._subscribe())
        self._subscription.add_done_callback(lambda _: self._changed.set())
        teller = asyncio.ensure_future(self._tell_conditions()) if self.worker._conditions else None
        try:
            while not self.is_stopping and not self._subscription.done():
                await self._wait(None)
            await self._finish()
        except asyncio.CancelledError:
            self.stop()
            await self._finish()
            raise
        finally:
            await self._end(teller)
        if not self._subscription.cancelled():
            self._subscription.result()

    def stop(self) -> None:
        self.is_stopping = True
        self._changed.set()

    def cancel_handlers(self) -> None:
        self._hurry = True
        self.stop()

    async def _wait(self, seconds: Optional[float]) -> None:
        """Waits until something has changed."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        self._changed.clear()

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
        """Keeps a stream open. Ends when the worker stops; raises what another try would not heal."""
        backoff = Backoff(*self.timing.backoff)
        while not self.is_stopping:
            self._opened = self._silent = False
            self._reading = asyncio.ensure_future(self._read())
            try:
                await asyncio.wait({self._reading})
            except asyncio.CancelledError:
                self._reading.cancel()
                await asyncio.wait({self._reading})
                raise
            finally:
                self._stream = None
                is_renewed, self._renewing = self._renewing is not None and self._reading.cancelled(), None
                self._releases = 0
                for active in list(self.wakes.values()):
                    self._wake_ended(active, "lost", "lost")
            if is_renewed and not self._silent:
                continue
            error = self._end_of_stream(self._reading)
            if self._opened:
                backoff.succeeded()
            if self.is_stopping:
                return
            if not error.is_passing:
                raise error
            if error.code != "refused":
                self.gateway.renew()  # The connection may be dead.
            wait = random.uniform(*self.timing.first_wait) if self._opened else backoff.failed()
            # With 503 a gateway says when it will have restarted, and workers spread their tries by themselves.
            wait += min(error.retry_after or 0, 300) if error.status == 429 else 0
            log.warning("%s; trying again in %.1f s", error, wait)
            await asyncio.sleep(wait)

    def _end_of_stream(self, reading: asyncio.Task[None]) -> WakeGateError:
        if self._silent:
            text = f"nothing came from {self.gateway.url} for {self.timing.silence:.0f} s"
            return WakeGateError("timedOut", text, "see the network", is_passing=True)
        try:
            reading.result()
        except WakeGateError as error:
            return error
        except (EventTooLarge, KeyError, TypeError, ValueError, AttributeError) as error:
            text = f"{self.gateway.url} sent what cannot be read ({error!r})"
            return WakeGateError("badAnswer", text, "see the gateway's version", is_passing=True)
        except asyncio.CancelledError:
            pass
        return WakeGateError("unreachable", "the gateway ended the stream", "it may be restarting", is_passing=True)

    async def _read(self) -> None:
        async with self.gateway.stream(self._path()) as response:
            self._stream = response.headers.get("wakegate-stream")
            self._opened = True
            log.info("subscribed to %s at %s", self.worker.topic, self.gateway.url)
            self._heard = time.monotonic()
            watch = self._loop.call_later(self.timing.silence, self._watch_silence)
            reader = EventReader()
            try:
                async for chunk in response.aiter_raw():
                    self._heard = time.monotonic()
                    for event in reader.feed(chunk):
                        self._received(event)
            except httpx.TransportError as error:
                raise_unanswered(error, self.gateway.url)
            finally:
                watch.cancel()
                self._opened_watch = None

    _opened_watch: Optional[asyncio.TimerHandle] = None

    def _watch_silence(self) -> None:
        reading, left = self._reading, self._heard + self.timing.silence - time.monotonic()
        if reading is None or reading.done():
            return
        if left > 0:
            self._loop.call_later(left, self._watch_silence)
            return
        self._silent = True
        reading.cancel()

    # Wakes

    def _received(self, event: Event) -> None:
        if event.name not in ("wake", "expiring", "expired", "conditions"):
            return  # An event of a later version.
        data = json.loads(event.data)
        if event.name == "conditions":
            fields = {name: value for name, value in data.items() if name != "device"}
            if self._conditions.full():
                self._conditions.get_nowait()
            self._conditions.put_nowait((data["device"], fields))
        elif event.name == "wake":
            if not self._ignores_wakes:
                self._wake_received(data)
        elif data["wake"] in self.wakes:
            active = self.wakes[data["wake"]]
            if event.name == "expired":
                reason = data.get("reason", "deadline")
                self._wake_ended(active, "lost" if reason == "lost" else "expired", reason)
            elif data.get("deadline", 0) >= active.wake._gateway_deadline:  # Else it has more time already.
                active.wake.expiration_reason = active.wake.expiration_reason or "deadline"
                active.stop_handler()

    def _wake_received(self, data: Mapping[str, Any]) -> None:
        kind, handler = data.get("kind", "push"), self._handler(data)
        if handler is None:
            # It is left alone: an answer would tell the gateway that somebody did its work.
            if kind not in self._refused and len(self._refused) < 16:
                self._refused.add(kind)
                log.warning("wake %s is of the kind %s, for which there is no handler", data["wake"], kind)
            return
        if data["wake"] in self.wakes:
            return
        if len(self.wakes) >= 2 * self.worker.slots + 16:
            raise ValueError("more wakes than slots")
        scheduler = self.worker.scheduler_for(data["device"])
        path = f"/v1/wakes/{segment(data['wake'])}"

        async def ask(action: str, body: Mapping[str, Any]) -> Any:
            active = self.wakes.get(data["wake"])
            if active is None or active.ended is not None:
                text = "the wake has ended: its result was sent, its time is over, or its stream broke"
                raise WakeGateError("wakeEnded", text, "")
            if action == "progress":  # What does not arrive is told again, with what is newest by then.
                return await self.gateway.once("POST", f"{path}/{action}", body)
            return await self.gateway.call("POST", f"{path}/{action}", body, repeatable=True)

        made = Push(data, scheduler, ask) if kind == "push" else Task(data, scheduler, ask)
        active = _Active(made, handler)
        self.wakes[made.id] = active
        self._expect_end(active)
        job = asyncio.ensure_future(self._handle(active))
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    def _handler(self, data: Mapping[str, Any]) -> Optional[Callable[[Any], Any]]:
        kind = data.get("kind", "push")
        if kind == "push":
            return self.worker._push
        handlers = self.worker._sessions if kind == "urlSession" else self.worker._tasks
        name = data.get("session" if kind == "urlSession" else "task")
        return next((handlers[each] for each in _candidates(str(name)) if each in handlers), None)

    def _expect_end(self, active: _Active) -> None:
        """Ends a wake of which the gateway says nothing after its deadline."""
        left = active.wake.deadline + self.timing.grace - time.monotonic()
        if left > 0:
            active.timer = self._loop.call_later(left, self._expect_end, active)
        else:
            self._wake_ended(active, "expired", "deadline")

    def _wake_ended(self, active: _Active, how: str, reason: str) -> None:
        if active.ended is not None:
            return
        active.ended = how
        active.wake.expiration_reason = reason
        if active.timer is not None:
            active.timer.cancel()
        active.stop_handler()

    async def _handle(self, active: _Active) -> None:
        """Has a wake handled, and delivers what came of it."""
        wake = active.wake
        try:
            async with self._slots:  # Free, unless others do not heed their cancellation.
                if active.ended is not None or self._hurry:
                    return
                self._handlers += 1
                try:
                    outcome = await self._outcome(active)
                finally:
                    self._handlers -= 1
                    wake._ended()
                    self._changed.set()
            if outcome is None:
                return
            if isinstance(wake, Task):
                await wake._told_last()
            await self._deliver(active, outcome)
        finally:
            if active.timer is not None:
                active.timer.cancel()
            self.wakes.pop(wake.id, None)
            self._changed.set()

    async def _outcome(self, active: _Active) -> Optional[Outcome]:
        """Returns what the handler came to; None for a lost wake, whose push is to lose no attempt."""
        wake, handler = active.wake, active.handler
        failed: Outcome = Result.FAILED if isinstance(wake, Push) else False
        active.is_sync = not _is_async(handler)
        active.handling = _in_thread(handler, wake) if active.is_sync else asyncio.ensure_future(handler(wake))
        try:
            await asyncio.wait({active.handling})
            value = active.handling.result()
            if inspect.isawaitable(value):
                active.is_sync, active.handling = False, asyncio.ensure_future(value)
                value = await active.handling
            if isinstance(wake, Push):
                return Result(value)
            return value is not False
        except Release as release:
            outcome: Outcome = release
        except asyncio.CancelledError:
            if not active.handling.done():
                active.handling.cancel()
                raise
            outcome = failed
        except Exception:
            if active.ended != "lost":
                log.exception("the handler of %r failed", wake)
            outcome = failed
        return None if active.ended == "lost" else outcome

    async def _deliver(self, active: _Active, outcome: Outcome) -> None:
        """Sends a result until the gateway has it, or it is too late."""
        wake, backoff, late = active.wake, Backoff(*self.timing.result_backoff), 0
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
                late += active.ended is not None
                wait = backoff.failed() + ((error.retry_after or 0) if error.status == 429 else 0)
                if not error.is_passing or late >= 2 or time.monotonic() + wait > wake.deadline + self.timing.late:
                    log.warning("the result of %r did not count: %s", wake, error)
                    return
                await asyncio.sleep(wait)
        log.debug("%r: %s", wake, outcome)
        if isinstance(outcome, Release):
            self._released(outcome)
        else:
            self._releases = 0
            self._release_backoff.succeeded()

    def _released(self, release: Release) -> None:
        """Subscribes again after three wakes that were given back, as the gateway gives the stream no more."""
        log.warning("a wake was given back: %s", release.reason)
        self._releases += 1
        if self._releases >= _RELEASES and self._renewing is None:
            self._renewing = self._loop.call_later(self._release_backoff.failed(), self._renew)

    def _renew(self) -> None:
        if self._reading is None or self.is_stopping or not self._releases:
            self._renewing = None
        elif self.wakes:
            self._renewing = self._loop.call_later(0.1, self._renew)
        else:
            self._reading.cancel()

    async def _tell_conditions(self) -> None:
        handler = self.worker._conditions
        assert handler is not None
        while True:
            device, fields = await self._conditions.get()
            try:
                if _is_async(handler):
                    await handler(device, fields)  # type: ignore[misc]
                else:
                    await _in_thread(handler, device, fields)
            except Exception:
                log.exception("the handler of conditions failed")

    # The end

    async def _finish(self) -> None:
        """Takes no more wakes, lets handlers end and delivers results, within the limit."""
        assert self._subscription is not None
        self.is_stopping = True
        now = time.monotonic()
        results = min(self.timing.results, self.timing.stop / 4)
        end, cancel_at, idle = now + self.timing.stop, now + self.timing.stop - results, None
        draining = asyncio.ensure_future(self._drain())
        cancelled = hurried = False
        try:
            while self.wakes or not self._subscription.done():
                now = time.monotonic()
                if self._hurry and not hurried:
                    hurried, cancel_at, end = True, now, min(end, now + self.timing.hurried)
                    results = min(results, self.timing.hurried_results)
                idle = None if self._handlers else (idle or now)
                limit = min(end, idle + results) if idle else (end if cancelled else cancel_at)
                if now >= limit:
                    if cancelled or not self._handlers:
                        return
                    cancelled = True
                    for active in self.wakes.values():
                        active.stop_handler()
                    continue
                if self._ignores_wakes and not self.wakes:
                    self._subscription.cancel()
                await self._wait(limit - now)
        finally:
            draining.cancel()
            await asyncio.wait({draining})

    async def _drain(self) -> None:
        """Asks the gateway for no more wakes; it ends the stream after the last result."""
        assert self._subscription is not None
        if self._stream is None:
            self._ignores_wakes = True
            self._changed.set()
            if not self.wakes:
                self._subscription.cancel()
            return
        path = f"/v1/streams/{segment(self._stream)}/drain"
        while True:
            try:
                await self.gateway.once("POST", path)
                return
            except WakeGateError as error:
                # What comes now is lost with the stream, and launches elsewhere.
                self._ignores_wakes = True
                self._changed.set()
                if not error.is_passing:
                    return
            await asyncio.sleep(1)

    async def _end(self, teller: Optional[asyncio.Task[None]]) -> None:
        for active in self.wakes.values():
            active.stop_handler()
            log.warning("the worker ended before the result of %r was delivered", active.wake)
        left = [each for each in (self._subscription, teller, *self._jobs) if each is not None and not each.done()]
        for each in left:
            each.cancel()
        if left:
            await asyncio.wait(left, timeout=1)


def _candidates(name: str) -> Iterator[str]:
    """Returns the names under which a handler may be registered, the closest first."""
    yield name
    prefix = name[:-1]  # A pattern stands for at least one character after its full stop.
    while "." in prefix:
        prefix = prefix.rpartition(".")[0]
        if prefix:
            yield f"{prefix}.*"


def _is_async(handler: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))


def _in_thread(function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
    """Calls a function in a thread of its own, for which the end of the program does not wait."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: Optional[BaseException]) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def called() -> None:
        value, error = None, None
        try:
            value = context.run(function, *arguments)
        except BaseException as caught:
            # A StopIteration cannot be raised into a future.
            error = RuntimeError(repr(caught)) if isinstance(caught, StopIteration) else caught
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=called, name="wakegate-handler", daemon=True).start()
    return future
