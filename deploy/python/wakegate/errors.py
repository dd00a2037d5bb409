"""Errors: a code to compare, a message for people, and a remedy."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, NoReturn, Optional

import httpx

#: The default address of `wakegate dev`.
DEFAULT_URL = "https://127.0.0.1:2197"


class WakeGateError(Exception):
    """An error with its cause and its remedy.

    `code` is one of the codes of the Swift SDK's `WakeWorkerError`: badArgument, badCredentials, untrusted,
    unreachable, timedOut, refused, badAnswer, wakeEnded, extensionLimitReached, alreadyRunning, duplicateTask,
    unavailable, cancelled. Neither the message nor the remedy contains a payload or a token.
    """

    #: The HTTP status and the reason of the answer; None if there was no answer.
    status: Optional[int] = None
    reason: Optional[str] = None
    #: The number of seconds to wait before a retry; None if the answer does not contain it.
    retry_after: Optional[float] = None
    #: True if a retry may succeed; and true if the request may have had its effect although there was no answer.
    is_passing = False
    may_have_arrived = False

    def __init__(self, code: str, message: str, remedy: str = "", **fields: Any) -> None:
        super().__init__(f"{code}: {message}" + (f"; {remedy}" if remedy else ""))
        self.code, self.message, self.remedy, self.fields = code, message, remedy, fields
        self.__dict__.update(fields)


class TaskError(WakeGateError):
    """The reason why a background task was not submitted or not cancelled; `__cause__` is the underlying error.

    `code` is one of the codes of the Swift SDK's `BackgroundTaskError`: notPermitted, unavailable, notForeground,
    tooManyPendingTaskRequests, immediateRunIneligible, badTaskRequest, tooManySessions, noDevice, unknownDevice,
    unregistered, tooManyRequests, shutdown, failed.
    """

    @classmethod
    def from_error(cls, error: WakeGateError) -> TaskError:
        codes = "NotPermitted Unavailable NotForeground TooManyPendingTaskRequests ImmediateRunIneligible ".split()
        codes += "BadTaskRequest TooManySessions UnknownDevice Unregistered Shutdown".split()
        code = "tooManyRequests" if error.status == 429 else "failed"
        if error.reason in codes:
            code = error.reason[0].lower() + error.reason[1:]
        return cls(code, error.message, error.remedy, **error.fields)


class TransferError(WakeGateError):
    """The reason why the transfer agent did not perform a request.

    `code` is one of the codes of the Swift SDK's `BackgroundTransferError`: badArgument, noAgent, notPermitted,
    timedOut, interrupted, badAnswer, badSession, badTransfer, badPath, unknownSession, unknownTransfer,
    tooManySessions, tooManyTransfers, noSpace, notFinished, alreadyTaken, fileExists, transferFailed,
    transferCancelled, refused.
    """

    @classmethod
    def from_error(cls, error: WakeGateError) -> TransferError:
        codes = "BadSession BadTransfer BadPath UnknownSession UnknownTransfer TooManySessions".split()
        codes += "TooManyTransfers NoSpace NotFinished AlreadyTaken FileExists".split()
        code, remedy = error.code, error.remedy
        if error.reason in codes:
            code = error.reason[0].lower() + error.reason[1:]
        elif error.status == 403 or "Permission denied" in error.message:
            code, remedy = "notPermitted", remedy or "start an agent of your own with `wakegate transfers`"
        elif code == "unreachable" and error.may_have_arrived:
            code, remedy = "interrupted", "list the session's transfers to see what it did"
        elif code == "unreachable":
            code, remedy = "noAgent", "start one with `wakegate transfers`, or name another in WAKEGATE_TRANSFERS"
        return cls(code, error.message, remedy, **error.fields)


class Release(Exception):
    """Gives a wake back: a handler raises it when its work cannot begin.

    The push or task loses no attempt, and another worker gets the wake if one is free. Operators see the reason.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason.encode()[:256].decode(errors="ignore")


def _tls_error(error: BaseException) -> Optional[ssl.SSLError]:
    """Returns the TLS error that caused another error, if one did."""
    seen: Optional[BaseException] = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return seen
        seen = seen.__cause__ or seen.__context__
    return None


def raise_unanswered(error: Exception, url: str, who: str = "gateway") -> NoReturn:
    """Raises the error that explains why a request got no answer."""
    detail = str(error) or type(error).__name__
    code, fields = "unreachable", {"is_passing": True, "may_have_arrived": True}
    text, remedy = f"the {who} at {url} ended the exchange ({detail})", f"see the {who}'s log"
    if isinstance(error, httpx.ConnectError) and _tls_error(error) is not None:
        code, fields = "untrusted", {}
        text = f"the certificate of {url} is not trusted ({detail})"
        remedy = "name its authority in WAKEGATE_CA (`wakegate dev` keeps it in .wakegate/ca.pem)"
    elif isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        fields = {"is_passing": True}
        start = "start one with `wakegate dev`" if url == DEFAULT_URL else "start it"
        text = f"no {who} answers at {url} ({detail})"
        remedy = f"{start}, or name another with WAKEGATE_URL" if who == "gateway" else ""
    elif isinstance(error, (httpx.TimeoutException, asyncio.TimeoutError)):
        code, text, remedy = "timedOut", f"the {who} at {url} was silent for too long", "see its load, and the network"
    raise WakeGateError(code, text, remedy, **fields) from error


def refusal(status: int, headers: httpx.Headers, body: Any, who: str) -> WakeGateError:
    """Returns the error for an answer."""
    reason = body.get("reason") if isinstance(body, dict) else None
    is_passing = status == 429 or status >= 500 and status != 507
    if not isinstance(reason, str):
        text, remedy = f"the answer is {status} without a reason", f"see whether the address is that of a {who}"
        return WakeGateError("badAnswer", text, remedy, status=status, is_passing=is_passing)
    ends = {"ExtensionLimitReached": "extensionLimitReached", "WakeEnded": "wakeEnded", "UnknownWake": "wakeEnded"}
    after = headers.get("retry-after", "")
    fields = {"status": status, "reason": reason, "is_passing": is_passing}
    fields["retry_after"] = float(after) if after.isdigit() else None
    text, remedy = f"the {who} answered {status} {reason}", str(body.get("message", ""))
    return WakeGateError(ends.get(reason, "refused"), text, remedy, **fields)
