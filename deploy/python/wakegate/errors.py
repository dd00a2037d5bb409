"""Errors: a code to compare, a message for people, and a remedy."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, NoReturn, Optional

import httpx

#: The default address of `wakegate dev`.
DEFAULT_URL = "https://127.0.0.1:2197"


class WakeGateError(Exception):
    """An error with its cause and its remedy, neither of which contains a payload or a token.

    `code` is one of the codes of the Swift SDK's `WakeWorkerError`: badArgument, badCredentials, untrusted,
    unreachable, timedOut, refused, badAnswer, wakeEnded, extensionLimitReached, alreadyRunning, duplicateTask,
    unavailable, cancelled.
    """

    #: The HTTP status and the reason of the answer; None if there was no answer.
    status: Optional[int] = None
    reason: Optional[str] = None
    #: The number of seconds to wait before a retry; None if the answer does not contain it.
    retry_after: Optional[float] = None
    #: `retry_after` if too many requests arrived, which a client must heed; otherwise 0.
    busy_wait: float = 0
    #: True if a retry may succeed; and true if the request may have had its effect although there was no answer.
    is_passing = False
    may_have_arrived = False

    def __init__(self, code: str, message: str, remedy: str = "", **fields: Any) -> None:
        super().__init__(f"{code}: {message}" + (f"; {remedy}" if remedy else ""))
        self.code, self.message, self.remedy, self.fields = code, message, remedy, fields
        self.__dict__.update(fields)


class TaskError(WakeGateError):
    """The reason why a background task was not submitted or not cancelled; `__cause__` is the underlying error. `code`
    is one of CODES, the codes of the Swift SDK's `BackgroundTaskError`."""

    CODES = (
        "notPermitted unavailable notForeground tooManyPendingTaskRequests immediateRunIneligible badTaskRequest "
        "tooManySessions noDevice unknownDevice unregistered tooManyRequests shutdown failed"
    ).split()

    @classmethod
    def from_error(cls, error: WakeGateError) -> TaskError:
        code = _camel(error.reason)
        if code not in cls.CODES:
            code = "tooManyRequests" if error.status == 429 else "failed"
        return cls(code, error.message, error.remedy, **error.fields)


class TransferError(WakeGateError):
    """The reason why the transfer agent did not perform a request. `code` is one of CODES, the codes of the Swift
    SDK's `BackgroundTransferError`."""

    CODES = (
        "badArgument noAgent notPermitted timedOut interrupted badAnswer badSession badTransfer badPath unknownSession "
        "unknownTransfer tooManySessions tooManyTransfers noSpace notFinished alreadyTaken fileExists transferFailed "
        "transferCancelled refused"
    ).split()

    @classmethod
    def from_error(cls, error: WakeGateError) -> TransferError:
        code, remedy = error.code, error.remedy
        if _camel(error.reason) in cls.CODES:
            code = _camel(error.reason)
        elif error.status == 403 or "Permission denied" in error.message:
            code, remedy = "notPermitted", remedy or "start an agent of your own with `wakegate transfers`"
        elif code == "unreachable" and error.may_have_arrived:
            code, remedy = "interrupted", "list the session's transfers to see what it did"
        elif code == "unreachable":
            code, remedy = "noAgent", "start one with `wakegate transfers`, or name another in WAKEGATE_TRANSFERS"
        return cls(code, error.message, remedy, **error.fields)


class Release(Exception):
    """Gives a wake back: a handler raises it when its work cannot begin. The push or task loses no attempt, and another
    worker gets the wake if one is free. Operators see the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason.encode()[:256].decode(errors="ignore")


def check(holds: object, message: str, remedy: str, code: str = "badArgument") -> None:
    """Raises a WakeGateError unless a condition holds."""
    if not holds:
        raise WakeGateError(code, message, remedy)


def raise_unanswered(error: Exception, url: str, who: str = "gateway") -> NoReturn:
    """Raises the error that explains why a request got no answer."""
    detail, fields = str(error) or type(error).__name__, {"is_passing": True, "may_have_arrived": True}
    code, text, remedy = "unreachable", f"the {who} at {url} ended the exchange ({detail})", f"see the {who}'s log"
    if isinstance(error, httpx.ConnectError) and _is_tls(error):
        code, text, fields = "untrusted", f"the certificate of {url} is not trusted ({detail})", {}
        remedy = "name its authority in WAKEGATE_CA (`wakegate dev` keeps it in .wakegate/ca.pem)"
    elif isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        text, fields = f"no {who} answers at {url} ({detail})", {"is_passing": True}
        start = "start one with `wakegate dev`" if url == DEFAULT_URL else "start it"
        remedy = f"{start}, or name another with WAKEGATE_URL" if who == "gateway" else ""
    elif isinstance(error, (httpx.TimeoutException, asyncio.TimeoutError)):
        code, text, remedy = "timedOut", f"the {who} at {url} was silent for too long", "see its load, and the network"
    raise WakeGateError(code, text, remedy, **fields) from error


def _is_tls(error: Optional[BaseException]) -> bool:
    """True if this is a TLS error, or one caused it."""
    return error is not None and (isinstance(error, ssl.SSLError) or _is_tls(error.__cause__ or error.__context__))


def _camel(reason: Optional[str]) -> str:
    """Returns the reason of an answer as a code: notPermitted for NotPermitted."""
    return reason[:1].lower() + reason[1:] if reason else ""
