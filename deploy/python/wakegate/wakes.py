"""The arguments of handlers: pushes, tasks and sessions, with their time and their progress."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import math
import threading
import time
from typing import Any, Awaitable, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, TypeVar

from ._gateway import TRIES, Gateway, attempted, limited, segment
from .errors import WakeGateError, check
from .scheduler import Scheduler

T = TypeVar("T")
log = logging.getLogger("wakegate")
Message = Mapping[str, Any]

#: The time requested at once to keep a wake alive, and the wait before a retry, in seconds.
_EXTENSION, _EXTENSION_RETRY = 30.0, 1.0
#: The maximum difference between two computations of the same deadline, in seconds, because answers take time.
_TOLERANCE = 0.5
#: The minimum time between two reports of progress, and the maximum time for the last one, in seconds.
_REPORT_INTERVAL, _LAST_REPORT = 0.25, 5.0
#: The maximum wait that the gateway may request before another report, in seconds. A task without a report for a minute
#: is ended.
_REPORT_WAIT_MAX = 10.0
#: The maximum number of units of a progress, and the maximum size of its title and its subtitle, in bytes.
_UNITS_MAX, _TEXT_BYTES_MAX = 2**53 - 1, 256

#: The reasons for which the gateway ends a wake, each with its explanation.
REASONS = {
    "deadline": "it brought no result before its deadline",
    "progress": "it reported no progress for too long",
    "conditions": "its device is in use, has lost external power, or is too hot",
    "pressure": "memory is short, or fewer tasks may run at a time",
    "cancelled": "the task was cancelled",
    "operator": "an operator ended it",
    "lost": "its connection broke or the gateway gave it up, and it launches again",
}


class Result(str, enum.Enum):
    """The result of handling a push, with the values of iOS's UIBackgroundFetchResult."""

    NEW_DATA = "newData"
    NO_DATA = "noData"
    FAILED = "failed"


class Wake:
    """A launch. Its handler must end when `expiring` is set, which also cancels an async handler."""

    def __init__(self, message: Message, gateway: Optional[Gateway] = None) -> None:
        self.id: str = message["wake"]
        #: push, appRefresh, processing, continued or urlSession.
        self.kind: str = message.get("kind", "push")
        self.device: str = message["device"]
        self.topic: str = message["topic"]
        #: The number of this attempt of the push or task, from 1.
        self.attempt: int = message.get("attempt", 1)
        #: The W3C trace context of the sender of the push or request.
        self.traceparent: Optional[str] = message.get("traceparent")
        self.tracestate: Optional[str] = message.get("tracestate")
        #: Submits and cancels background tasks of the wake's device.
        self.scheduler = Scheduler(gateway, self.device, "no gateway sent this wake")
        #: Set when the handler must end. A sync handler checks it regularly, or waits on it instead of sleeping.
        self.expiring = threading.Event()
        #: One of REASONS, such as deadline or lost; None while the time is not over.
        self.expiration_reason: Optional[str] = None
        left = message.get("timeLeft")
        if not isinstance(left, (int, float)):
            left = message["deadline"] - time.time() * 1000  # By the wall clock, if the gateway does not send it.
        #: The deadline, by this machine's monotonic clock in seconds.
        self.deadline = time.monotonic() + max(-1e13, min(left, 1e13)) / 1000  # Larger values are not accepted.
        self._gateway_deadline: float = message["deadline"]
        self._gateway, self._path, self._asking = gateway, f"/v1/wakes/{segment(self.id)}", 0
        self._loop = asyncio.get_running_loop() if gateway else None
        #: The task that runs an async handler.
        self._handling: Optional[asyncio.Future[Any]] = None
        #: The task that reports a continued task's progress.
        self._reporter: Optional[asyncio.Task[None]] = None
        self._has_ended = self._is_moved = self._is_near = False

    def __repr__(self) -> str:
        return f"{self.kind} {getattr(self, 'identifier', 'of ' + self.topic)} (wake {self.id})"

    @property
    def time_left(self) -> float:
        """The seconds until the deadline, by this machine's monotonic clock; never negative."""
        return max(0.0, self.deadline - time.monotonic())

    async def extend(self, seconds: float = _EXTENSION) -> float:
        """Requests this number of seconds from now, and returns the remaining seconds, which may be fewer. Raises
        WakeGateError: extensionLimitReached, wakeEnded, and errors of requests."""
        await self._asked("extend", {"seconds": max(1, math.ceil(seconds))})
        return self.time_left

    @contextlib.contextmanager
    def extended(self) -> Iterator[None]:
        """Keeps the wake alive within a `with` block: requests more time whenever half of it has passed."""
        keeper = asyncio.run_coroutine_threadsafe(self._keep_alive(), self._loop) if self._loop else None
        try:
            yield
        finally:
            if keeper is not None:
                keeper.cancel()

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(max(0, self.time_left - _EXTENSION / 2))
            try:
                await self.extend()
            except WakeGateError as error:
                if not error.is_passing:
                    return
                await asyncio.sleep(_EXTENSION_RETRY)

    def call(self, awaitable: Awaitable[T]) -> T:
        """Waits for an awaitable in a sync handler: `push.call(push.extend(60))`."""
        if self._loop is None or asyncio._get_running_loop() is self._loop:
            raise WakeGateError("badArgument", "no gateway sent this wake, or its handler is async", "await it instead")
        return asyncio.run_coroutine_threadsafe(limited(awaitable, None), self._loop).result()

    async def _asked(self, action: str, body: Message) -> None:
        """Sends a request that moves the deadline."""
        if self._gateway is None or self._has_ended:
            text = "the wake has ended: its result was sent, its time is over, or its stream broke"
            raise WakeGateError("wakeEnded", text if self._gateway else "no gateway sent this wake, so none is asked")
        self._asking += 1
        try:
            path, tries = f"{self._path}/{action}", 1 if action == "progress" else TRIES
            # Lost progress is reported again, with the newest values.
            answer = await self._gateway.call("POST", path, body, repeatable=True, tries=tries)
            try:
                deadline, left = float(answer["deadline"]), answer.get("timeLeft")
                # Of the gateway's clock, only differences count.
                former = self.deadline + (deadline - self._gateway_deadline) / 1000
                here = former if left is None else time.monotonic() + left / 1000
            except (KeyError, TypeError, ValueError) as error:
                raise WakeGateError("badAnswer", "the gateway names no deadline", "see its version") from error
            if deadline > self._gateway_deadline or here > self.deadline + _TOLERANCE:
                self._is_moved, self._is_near = True, False
                self.deadline, self._gateway_deadline = max(self.deadline, here), deadline
        finally:
            self._asking -= 1
            self._expire()

    def _expire(self, event: Optional[Message] = None) -> None:
        """Stops the handler because a deadline is near, unless it was moved or a request is about to move it."""
        if event is not None:
            here, deadline = time.monotonic() + event["timeLeft"] / 1000, event["deadline"]
            # Another process may also have moved it, and the gateway's clock may have been set back.
            if not self._is_moved or deadline >= self._gateway_deadline or here >= self.deadline - _TOLERANCE:
                self._is_near, self.deadline, self._gateway_deadline = True, here, deadline
        if self._is_near and not self._asking:
            self._is_near = False  # A later answer that moves nothing must not cancel its cleanup.
            self.expiration_reason = self.expiration_reason or ("progress" if self.kind == "continued" else "deadline")
            self._stop()

    def _stop(self) -> None:
        self.expiring.set()
        if self._handling is not None:
            self._handling.cancel()


class Push(Wake):
    """A silent push, or several in one, for one device."""

    def __init__(self, message: Message, gateway: Optional[Gateway] = None) -> None:
        super().__init__(message, gateway)
        #: None for a wake that an operator made without a push.
        self.apns_id: Optional[str] = message.get("apnsID")
        self.collapse_id: Optional[str] = message.get("collapseID")
        self.priority: int = message.get("priority", 5)
        #: The number of older pushes that it also represents.
        self.coalesced: int = message.get("coalesced", 0)
        #: The times at which the gateway accepted the push and the oldest push that it represents, in milliseconds
        #: since 1970 by the gateway's clock.
        self.received_at: int = message.get("receivedAt", 0)
        self.first_received_at: int = message.get("firstReceivedAt", 0)
        self.trace_links: List[str] = message.get("traceLinks") or []
        #: The JSON object that the provider sent; empty for a wake without a push.
        self.payload: Dict[str, Any] = message.get("payload") or {}

    @classmethod
    def sample(cls, payload: Optional[Message] = None, topic: str = "com.example.app", **members: Any) -> Push:
        """Returns a push that no gateway sent, for testing a handler."""
        return cls({**_sample(topic), "payload": payload, **members})


class Resumption(NamedTuple):
    """The last reported progress of a continued task that was lost."""

    completed: int
    total: int
    title: Optional[str] = None
    subtitle: Optional[str] = None


def _member(name: str) -> Any:
    """Returns a property for a member of a progress."""
    return property(lambda progress: progress._values[name], lambda progress, value: progress.update(**{name: value}))


class Progress:
    """The progress of a continued task. Set its members from any thread; at most four reports a second are sent, and
    none for other tasks."""

    completed: int = _member("completed")
    total: int = _member("total")
    title: Optional[str] = _member("title")
    subtitle: Optional[str] = _member("subtitle")

    def __init__(self, title: Optional[str] = None, subtitle: Optional[str] = None) -> None:
        self._lock = threading.RLock()
        self._values: Dict[str, Any] = {"completed": 0, "total": 0, "title": title, "subtitle": subtitle}
        self._signal: Callable[[], None] = lambda: None
        #: The unfinished children, with the number of units that each represents; None if there was never one.
        self._children: Optional[Dict[Progress, int]] = None

    def child(self, units: int, total: int) -> Progress:
        """Returns a progress for a part of the work, which represents this number of this progress's units. They are
        added to `completed` when the child has finished. With children, the task reports thousandths of units."""
        child = Progress()
        child.total = total
        child._lock, child._signal = self._lock, lambda: self._child_changed(child)
        with self._lock:
            self._children = self._children or {}
            self._children[child] = units
        return child

    def _child_changed(self, child: Progress) -> None:
        with self._lock:
            if self._children and child.completed >= max(child.total, 1):
                self.completed += self._children.pop(child, 0)
        self._signal()

    def _done(self) -> float:
        """Returns the number of completed units, including the completed part of unfinished children."""
        parts = (self._children or {}).items()
        return self.completed + sum(units * part._done() / max(part.total, 1) for part, units in parts)

    def update(self, **values: Any) -> None:
        """Sets several members at once: completed, total, title, subtitle."""
        if not values.keys() <= self._values.keys():
            raise TypeError("the members of a progress are completed, total, title and subtitle")
        for name, value in values.items():
            if name in ("completed", "total"):
                is_usable = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _UNITS_MAX
                remedy = f"set a whole number from 0 to {_UNITS_MAX}, such as int(value)"
            else:
                is_usable = value is None or isinstance(value, str) and len(value.encode()) <= _TEXT_BYTES_MAX
                remedy = f"set None, or a text of at most {_TEXT_BYTES_MAX} bytes"
            check(is_usable, f"{name} is {value!r:.40}", remedy)
        with self._lock:
            changed = any(self._values[name] != value for name, value in values.items())
            self._values.update(values)
        if changed:
            self._signal()

    def add(self, completed: int = 1) -> None:
        """Adds to `completed`; may be called from several threads at once."""
        with self._lock:
            self.update(completed=self.completed + completed)

    def report(self) -> Dict[str, Any]:
        """Returns the body of a report."""
        with self._lock:
            values = {name: value for name, value in self._values.items() if value is not None}
            if self._children is not None:  # Adding 1e-6 compensates for rounding errors.
                values.update(completed=int(1000 * self._done() + 1e-6), total=1000 * self.total)
            return values


class Task(Wake):
    """A background task's launch, or a session's transfers that have finished."""

    def __init__(self, message: Message, gateway: Optional[Gateway] = None) -> None:
        super().__init__(message, gateway)
        #: The task's identifier, or the session's name.
        self.identifier: str = message["session" if self.kind == "urlSession" else "task"]
        #: The number of finished transfers of a session; 0 for a task.
        self.count: int = message.get("count", 1) if self.kind == "urlSession" else 0
        self.submitted_at: int = message.get("submittedAt", 0)
        #: Reported for continued tasks alone.
        self.progress = Progress(message.get("title"), message.get("subtitle"))
        resumed = message.get("resumedFrom") or {}
        #: The progress from which a continued task may resume, in thousandths of units if it had children; None in
        #: its first launch.
        self.resumed_from: Optional[Resumption] = None
        if isinstance(resumed.get("completed"), int) and isinstance(resumed.get("total"), int):
            self.resumed_from = Resumption(*map(resumed.get, Resumption._fields))
        self._told, self._is_refused = self.progress.report(), False

    @classmethod
    def sample(cls, identifier: str, kind: str = "appRefresh", topic: str = "com.example.app", **members: Any) -> Task:
        """Returns a task that no gateway sent, for testing a handler."""
        name = "session" if kind == "urlSession" else "task"
        return cls({**_sample(topic), "kind": kind, name: identifier, **members})

    async def _report(self) -> None:
        """Reports the progress to the gateway after each change."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def signal() -> None:
            with contextlib.suppress(RuntimeError):  # A thread may outlive the event loop.
                loop.call_soon_threadsafe(changed.set)

        self.progress._signal = signal
        while True:
            await changed.wait()
            changed.clear()
            wait = _REPORT_INTERVAL
            try:
                await self._tell()
            except WakeGateError as error:
                changed.set()
                wait = max(wait, min(error.busy_wait, _REPORT_WAIT_MAX))
            await asyncio.sleep(wait)

    async def _tell(self) -> None:
        """Sends a report, unless the gateway has answered it already. Raises an error if a retry may succeed."""
        report = self.progress.report()
        if report == self._told:
            return
        try:
            await self._asked("progress", report)
        except WakeGateError as error:
            if error.is_passing:
                raise
            if error.code != "wakeEnded" and not self._is_refused:  # Later reports may be accepted.
                self._is_refused = True
                log.warning("a progress report of %s was refused: %s", self, error)
        self._told = report

    async def _tell_last(self) -> None:
        """Sends the last report, for which a result waits."""
        if self._reporter is not None:
            self._reporter.cancel()
            if not self.expiring.is_set():
                await attempted(self._tell(), _LAST_REPORT)


def _sample(topic: str) -> Dict[str, Any]:
    deadline = int(time.time() * 1000) + 30_000
    return {"wake": "0" * 32, "device": "0" * 32, "topic": topic, "deadline": deadline, "timeLeft": 30_000}
