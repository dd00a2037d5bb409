"""Errors: a code to compare, a message for people, and a remedy."""

from __future__ import annotations

import ssl
from typing import Any, Dict, NoReturn, Optional

import httpx


class WakeGateError(Exception):
    """What went wrong, and what to do about it.

    `code` is one of the codes of the Swift SDK's `WakeWorkerError`: badArgument, badCredentials, untrusted,
    unreachable, timedOut, refused, badAnswer, wakeEnded, extensionLimitReached, alreadyRunning, duplicateTask,
    unavailable, cancelled. Neither the message nor the remedy holds a payload or a token.
    """

    def __init__(
        self,
        code: str,
        message: str,
        remedy: str = "",
        *,
        status: Optional[int] = None,
        reason: Optional[str] = None,
        retry_after: Optional[float] = None,
        is_passing: bool = False,
        may_have_arrived: bool = False,
    ) -> None:
        super().__init__(f"{code}: {message}" + (f"; {remedy}" if remedy else ""))
        self.code = code
        self.message = message
        self.remedy = remedy
        #: The HTTP status and the reason of the answer; None if there was no answer.
        self.status = status
        self.reason = reason
        #: The number of seconds to wait before another try; None if the answer does not say so.
        self.retry_after = retry_after
        #: True if another try may succeed.
        self.is_passing = is_passing
        #: True if the request may have been carried out although there was no answer.
        self.may_have_arrived = may_have_arrived

    def fields(self) -> Dict[str, Any]:
        """Returns everything but the code, the message and the remedy."""
        names = ("status", "reason", "retry_after", "is_passing", "may_have_arrived")
        return {name: getattr(self, name) for name in names}


class TaskError(WakeGateError):
    """Why a background task was not submitted or not cancelled; `cause` is the underlying error, if there is one.

    `code` is one of the codes of the Swift SDK's `BackgroundTaskError`: notPermitted, unavailable, notForeground,
    tooManyPendingTaskRequests, immediateRunIneligible, badTaskRequest, tooManySessions, noDevice, unknownDevice,
    unregistered, tooManyRequests, shutdown, failed.
    """

    cause: Optional[WakeGateError] = None

    @classmethod
    def from_error(cls, error: WakeGateError) -> TaskError:
        codes = (
            "NotPermitted Unavailable NotForeground TooManyPendingTaskRequests ImmediateRunIneligible BadTaskRequest "
            "TooManySessions UnknownDevice Unregistered Shutdown"
        ).split()
        code = "tooManyRequests" if error.status == 429 else "failed"
        if error.reason in codes:
            code = error.reason[0].lower() + error.reason[1:]
        made = cls(code, error.message, error.remedy, **error.fields())
        made.cause = error
        return made


class TransferError(WakeGateError):
    """Why the transfers agent did not do what it was asked for.

    `code` is one of the codes of the Swift SDK's `BackgroundTransferError`: badArgument, noAgent, notPermitted,
    timedOut, interrupted, badAnswer, badSession, badTransfer, badPath, unknownSession, unknownTransfer,
    tooManySessions, tooManyTransfers, noSpace, notFinished, alreadyTaken, fileExists, transferFailed,
    transferCancelled, refused, unavailable.
    """


class Release(Exception):
    """Gives a wake back: a handler raises it when its work cannot begin.

    It costs the push or task no attempt, and another worker gets the wake if one is free. Operators see the reason.
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


def raise_unanswered(error: Exception, url: str) -> NoReturn:
    """Raises the error that explains why a request got no answer."""
    detail = str(error) or type(error).__name__
    tls = _tls_error(error)
    if isinstance(error, httpx.ConnectError) and tls is not None:
        remedy = "name its authority with `ca` or WAKEGATE_CA"
        raise WakeGateError("untrusted", f"the certificate of {url} is not trusted ({detail})", remedy) from error
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        text, remedy = f"no gateway answers at {url} ({detail})", "see whether it runs there"
        raise WakeGateError("unreachable", text, remedy, is_passing=True) from error
    if isinstance(error, (httpx.TimeoutException, TimeoutError)) or type(error).__name__ == "TimeoutError":
        text, remedy = f"{url} did not answer in time", "see its load, and the network"
        raise WakeGateError("timedOut", text, remedy, is_passing=True, may_have_arrived=True) from error
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.InvalidURL)):
        raise WakeGateError("badArgument", detail, "see the gateway's URL") from error
    text, remedy = f"{url} ended the exchange ({detail})", "see the gateway's log"
    raise WakeGateError("unreachable", text, remedy, is_passing=True, may_have_arrived=True) from error


def refusal(status: int, headers: httpx.Headers, body: Any, who: str = "gateway") -> WakeGateError:
    """Returns the error that an answer stands for."""
    reason = body.get("reason") if isinstance(body, dict) else None
    if not isinstance(reason, str):
        text, remedy = f"the answer is {status} without a reason", f"see whether the address is that of a {who}"
        return WakeGateError("badAnswer", text, remedy, status=status, is_passing=status >= 500 or status == 429)
    ends = {"ExtensionLimitReached": "extensionLimitReached", "WakeEnded": "wakeEnded", "UnknownWake": "wakeEnded"}
    code = ends.get(reason, "refused")
    after = headers.get("retry-after", "")
    return WakeGateError(
        code,
        f"the {who} answered {status} {reason}",
        str(body.get("message", "")),
        status=status,
        reason=reason,
        retry_after=float(after) if after.isdigit() else None,
        is_passing=status >= 500 or status == 429,
    )
