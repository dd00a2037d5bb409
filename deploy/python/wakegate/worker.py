"""A worker: subscribes to the wakes of a topic and calls a handler for each."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import signal
import socket
import threading
from typing import Any, Awaitable, Callable, Dict, List, Optional, Sequence, TypeVar, Union

from ._gateway import Gateway, segment
from ._session import Session, Timing
from .errors import WakeGateError, check
from .location import Location
from .scheduler import IDENTIFIER, IDENTIFIER_REMEDY, Scheduler, hexadecimal
from .wakes import Push, Result, Task, log

PushHandler = Callable[[Push], Union[Result, Awaitable[Result]]]
TaskHandler = Callable[[Task], Union[Optional[bool], Awaitable[Optional[bool]]]]
ConditionsHandler = Callable[[str, Dict[str, Any]], Union[None, Awaitable[None]]]
P = TypeVar("P", bound=PushHandler)
H = TypeVar("H", bound=TaskHandler)
C = TypeVar("C", bound=ConditionsHandler)


class Worker:
    """Handles the wakes of a topic, several at once.

        worker = Worker("https://127.0.0.1:2197", topic="com.example.app", ca=".wakegate/ca.pem")

        @worker.push
        async def fetch(push):
            return Result.NEW_DATA

        worker.run()

    Without a URL, the gateway is found as in the command line tool: by WAKEGATE_URL, WAKEGATE_CA, WAKEGATE_TOKEN and
    the other variables, the context in use, or a `wakegate dev` in this folder, which may start after the worker.

    Async handlers run in the event loop; sync handlers run in threads, and may block. An async handler is cancelled 5 s
    before the deadline of its wake (`event: expiring`), when its time is over, and when the connection breaks, because
    the gateway then gives the wake to another worker; a sync handler checks `push.expiring`. A result that is returned
    before the deadline counts. An exception means Result.FAILED.
    """

    def __init__(
        self,
        gateway: Optional[str] = None, *, topic: str = "", ca: Optional[str] = None, token: Optional[str] = None,
        token_file: Optional[str] = None, cert: Optional[str] = None, key: Optional[str] = None,
        context: Optional[str] = None, slots: int = 16, devices: Sequence[str] = (), resources: Sequence[str] = (),
        name: Optional[str] = None, silence_limit: float = 40, stop_limit: float = 40,
    ) -> None:
        """Creates a worker; nothing is sent yet. `slots` (1 to 4096) is the maximum number of concurrent wakes;
        `devices` (at most 64) restricts it to these tokens; `silence_limit` (20 to 300 s) is the time after which a
        silent connection is considered lost; `stop_limit` (5 to 86,400 s) is the maximum time for stopping."""
        remedy = f'write topic="{gateway}" to name a topic, or a URL such as https://127.0.0.1:2197'
        check(not gateway or ":/" in gateway, f'the gateway is "{gateway}"', remedy)
        check(topic, "no topic is named", 'name the app\'s: topic="com.example.app"')
        check(1 <= slots <= 4096, f"slots is {slots}", "a worker takes 1 to 4096 wakes at once")
        check(len(devices) <= 64, f"{len(devices)} devices are named", "name at most 64, or none for all")
        check(20 <= silence_limit <= 300, f"the silence limit is {silence_limit} s", "take 20 to 300 s")
        check(5 <= stop_limit <= 86_400, f"the stop limit is {stop_limit} s", "take 5 to 86400 s")
        location = Location(gateway, ca=ca, token=token, token_file=token_file, cert=cert, key=key, context=context)
        self.topic, self.slots, self.devices, self.resources = topic, slots, list(devices), list(resources)
        self.name = name or socket.gethostname()
        self._timing, self._gateway = Timing(silence=silence_limit, stop=stop_limit), Gateway(location)
        self._push: Optional[PushHandler] = None
        self._tasks: Dict[str, TaskHandler] = {}
        self._sessions: Dict[str, TaskHandler] = {}
        self._conditions: Optional[ConditionsHandler] = None
        self._session: Optional[Session] = None

    # Handlers

    def push(self, handler: P = None) -> P:  # type: ignore[assignment]
        """Registers the handler of pushes. It returns a Result."""
        check(handler is not None, "@worker.push() has no handler", "write @worker.push without parentheses")
        self._check_handler(handler, "push")
        check(self._push is None, "pushes have a handler", "register one handler for each kind", "duplicateTask")
        self._push = handler
        return handler

    def app_refresh(self, identifier: str) -> Callable[[H], H]:
        """Registers the handler of a short task, for every launch of its identifier, whatever kind the request has. It
        has succeeded unless it raises an exception or returns False. `com.example.export.*` matches identifiers with
        any text after the last dot."""
        return self._registered("app_refresh", identifier, self._tasks)

    def processing(self, identifier: str) -> Callable[[H], H]:
        """Registers the handler of a task of minutes, like `app_refresh`."""
        return self._registered("processing", identifier, self._tasks)

    def continued(self, identifier: str) -> Callable[[H], H]:
        """Registers the handler of a task that a person waits for: its time lasts as long as `task.progress`
        advances. The progress of other tasks is not reported."""
        return self._registered("continued", identifier, self._tasks)

    def session(self, name: str) -> Callable[[H], H]:
        """Registers the handler of a background session whose transfers have finished."""
        return self._registered("session", name, self._sessions)

    def conditions(self, handler: C) -> C:
        """Registers a function that is called with a device's token and its conditions whenever they change."""
        self._check_handler(handler, "device", "fields")
        self._conditions = handler
        return handler

    def _registered(self, kind: str, name: str, handlers: Dict[str, TaskHandler]) -> Callable[[H], H]:
        check(isinstance(name, str), f"@worker.{kind} has no name", f'write @worker.{kind}("com.example.refresh")')
        check(IDENTIFIER.fullmatch(name.removesuffix(".*")), f'identifier is "{name}"', IDENTIFIER_REMEDY)

        def register(handler: H) -> H:
            self._check_handler(handler, "task")
            remedy = "register one handler for each identifier"
            check(name not in handlers, f"{name} has a handler already", remedy, "duplicateTask")
            check(len(handlers) < 64, "64 handlers are registered already", "use a pattern")
            handlers[name] = handler
            return handler

        return register

    def _check_handler(self, handler: Callable[..., Any], *arguments: str) -> None:
        check(self._session is None, "the worker runs already", "register handlers before run()", "alreadyRunning")
        with contextlib.suppress(ValueError):  # Some built-in functions have no signature.
            try:
                inspect.signature(handler).bind(*arguments)
            except TypeError as error:
                remedy = f"write def handler({', '.join(arguments)})"
                raise WakeGateError("badArgument", f"{handler!r} cannot be a handler ({error})", remedy) from None

    # Running

    def run(self) -> None:
        """Handles wakes until SIGTERM or SIGINT; then takes no more, waits for handlers, and delivers their results. A
        second signal cancels the handlers. Raises WakeGateError if a retry cannot succeed: the gateway refuses this
        worker, or this worker does not trust the gateway's certificate. If the gateway is unreachable, it retries."""

        async def run() -> None:
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGTERM, signal.SIGINT):
                    asyncio.get_running_loop().add_signal_handler(number, self._signalled)
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})  # A parent may have blocked it.
            await self.serve()

        try:
            asyncio.run(run())
        except WakeGateError as error:  # A traceback of its causes and of the event loop would hide its message.
            raise error.with_traceback(None) from None

    def _signalled(self) -> None:
        if self._session is None or self._session.is_stopping:
            return self.cancel_handlers()
        level, count = logging.WARNING if self._session.wakes else logging.INFO, len(self._session.wakes)
        log.log(level, "stopping; %d running wakes may end; a second signal cancels them", count)
        self.stop()

    async def serve(self) -> None:
        """Does the same as `run`, without signals, in a program that has an event loop."""
        check(self._session is None, "this worker runs already", "make another one", "alreadyRunning")
        remedy = "use @worker.push, @worker.app_refresh(...) or another decorator before run()"
        check(self._push or self._tasks or self._sessions, "no handler is registered", remedy)
        self._session, self._gateway.loop = Session(self), asyncio.get_running_loop()
        try:
            await self._session.run()
        finally:
            self._session = self._gateway.loop = None
            await self._gateway.renew()

    def stop(self) -> None:
        """Takes no more wakes; `run` returns when handlers have ended and results are delivered. May be called from
        any thread."""
        if self._session is not None:
            self._session.stop()

    def cancel_handlers(self) -> None:
        """Stops, and cancels the running handlers. May be called from any thread."""
        if self._session is not None:
            self._session.stop(hurries=True)

    # Devices and tasks

    @property
    def scheduler(self) -> Scheduler:
        """Submits and cancels background tasks of the worker's one device."""
        if len(self.devices) == 1:
            return self.scheduler_for(self.devices[0])
        return Scheduler(None, "", f"this worker names {len(self.devices)} devices")

    def scheduler_for(self, device: str) -> Scheduler:
        """Submits and cancels background tasks of a device."""
        return Scheduler(self._gateway, device)

    async def register(self, device: Optional[str] = None) -> str:
        """Registers a device of the topic, and returns its token; without an argument, it creates one."""
        body = {} if device is None else {"token": hexadecimal(device)}
        answer = await self._gateway.call("POST", f"{self._path}/devices", body, repeatable=device is not None)
        return str(answer["token"])

    async def unregister(self, device: str) -> None:
        """Removes a device: its pending pushes are discarded, and pushes to it are refused."""
        await self._gateway.call("DELETE", f"/v1/devices/{hexadecimal(device)}")

    async def report(self, device: str, **conditions: Any) -> Dict[str, Any]:
        """Reports conditions such as batteryLevel, charging, thermalState, memoryPressure, network and appState, and
        returns all conditions of the device."""
        return dict(await self._gateway.call("PATCH", f"/v1/devices/{hexadecimal(device)}/conditions", conditions))

    async def supported_resources(self) -> List[str]:
        """Returns the resources of connected workers for background tasks, such as gpu."""
        answer = await self._gateway.call("GET", f"{self._path}/resources")
        return [str(name) for name in answer["resources"]]

    @property
    def _path(self) -> str:
        return f"/v1/topics/{segment(self.topic)}"
