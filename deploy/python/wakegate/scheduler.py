"""Requests of background tasks for one device."""

from __future__ import annotations

import datetime
import re
import secrets
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Union

from ._gateway import Gateway, segment
from .errors import TaskError, WakeGateError, check

#: The names of tasks and sessions, and what to do about another one.
IDENTIFIER = re.compile(r"[A-Za-z0-9._-]{1,255}")
IDENTIFIER_REMEDY = "write 1 to 255 letters, digits, periods, hyphens and underscores"
Moment = Union[float, int, datetime.timedelta, datetime.datetime]


class Submission(NamedTuple):
    """The result of submitting a request."""

    identifier: str
    kind: str
    #: launched, scheduled or replaced.
    disposition: str
    #: The time of its launch, in milliseconds since 1970; None while a hold applies.
    eligible_at: Optional[int]
    #: The hold that delays it.
    held: Optional[str]


class Scheduler:
    """Submits and cancels background tasks of a device. Raises TaskError. `submit` returns when the gateway has stored
    the request."""

    def __init__(self, gateway: Optional[Gateway], device: str, why_none: str = "") -> None:
        self._gateway, self._device, self._why_none = gateway, device, why_none

    async def submit(
        self,
        identifier: str, kind: str = "appRefresh", *, earliest_begin: Optional[Moment] = None,
        requires_network: bool = False, requires_power: bool = False, title: Optional[str] = None,
        subtitle: Optional[str] = None, strategy: Optional[str] = None, resources: Sequence[str] = (),
    ) -> Submission:
        """Submits a task: appRefresh, processing or continued. `earliest_begin` is a number of seconds from now, a
        timedelta, or a datetime with a time zone."""
        _check_identifier(identifier)
        members: Dict[str, Any] = {"identifier": identifier, "kind": kind, "subtitle": subtitle, "strategy": strategy}
        members.update(title=title, resources=list(resources) or None, requiresExternalPower=requires_power or None)
        members["earliestBegin"] = None if earliest_begin is None else _milliseconds(earliest_begin)
        members["requiresNetworkConnectivity"] = requires_network or None
        body = {name: value for name, value in members.items() if value is not None}
        found = await self._ask("POST", "/tasks", body) or {}
        return Submission(identifier, kind, str(found.get("disposition")), found.get("eligibleAt"), found.get("held"))

    async def pending(self) -> List[Dict[str, Any]]:
        """Returns the pending requests, in the gateway's format."""
        return list((await self._ask("GET", "/tasks") or {}).get("waiting", []))

    async def cancel(self, identifier: str) -> None:
        """Cancels a pending request. Running tasks continue, except a continued task, which ends."""
        _check_identifier(identifier)
        await self._ask("DELETE", f"/tasks/{segment(identifier)}")

    async def cancel_all(self) -> None:
        """Cancels all pending requests, and ends continued tasks."""
        await self._ask("DELETE", "/tasks")

    async def transfers_finished(self, session: str, count: int = 1, id: Optional[str] = None) -> None:
        """Reports finished transfers of a background session, which launches the session's handler. Reports with the
        same id count once; the default is a random id."""
        _check_identifier(session, "session")
        body = {"finished": count, "id": id or secrets.token_hex(16)}
        await self._ask("POST", f"/sessions/{segment(session)}", body, repeatable=True)

    async def _ask(self, method: str, rest: str, body: Any = None, repeatable: bool = False) -> Any:
        if self._gateway is None:
            raise TaskError("noDevice", self._why_none, "name one device, or use worker.scheduler_for(token)")
        try:
            return await self._gateway.call(method, f"/v1/devices/{hexadecimal(self._device)}{rest}", body, repeatable)
        except WakeGateError as error:
            raise TaskError.from_error(error) from error


def _check_identifier(text: str, field: str = "identifier") -> None:
    if not IDENTIFIER.fullmatch(text):
        raise TaskError("badTaskRequest", f'{field} is "{text}"', IDENTIFIER_REMEDY)


def hexadecimal(token: str) -> str:
    """Returns a device token in the form for paths."""
    remedy = "a device token is an even number of hexadecimal digits, 32 to 200 of them"
    check(re.fullmatch(r"(?:[0-9A-Fa-f]{2}){16,100}", token), "the device token cannot be used", remedy)
    return token


def _milliseconds(moment: Moment) -> int:
    if isinstance(moment, (int, float)):
        moment = datetime.timedelta(seconds=moment)
    if isinstance(moment, datetime.timedelta):
        moment = datetime.datetime.now(datetime.timezone.utc) + moment
    if not isinstance(moment, datetime.datetime):
        raise TaskError("badTaskRequest", f"earliest_begin is {moment!r}", "earliest_begin is seconds, or a datetime")
    return int(moment.timestamp() * 1000)
