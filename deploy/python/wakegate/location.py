"""The address of the gateway and the worker's credentials: arguments, variables, contexts, a running `wakegate dev`."""

from __future__ import annotations

import json
import math
import os
import re
import ssl
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import httpx

from .errors import DEFAULT_URL, WakeGateError, check


class Location:
    """The gateway's URL and the credentials, resolved as in the command line tool.

    Arguments take precedence over WAKEGATE_URL, WAKEGATE_CA, WAKEGATE_TOKEN_FILE, WAKEGATE_TOKEN, WAKEGATE_CERT and
    WAKEGATE_KEY, these over the context in use, and the context over a `wakegate dev` that runs in this folder. If an
    argument or WAKEGATE_URL names the gateway, no credentials of the context in use are sent to it. A context that is
    named takes precedence over the variables.
    """

    def __init__(
        self, url: Optional[str] = None, *, ca: Optional[str] = None, token: Optional[str] = None,
        token_file: Optional[str] = None, cert: Optional[str] = None, key: Optional[str] = None,
        context: Optional[str] = None, variables: Mapping[str, str] = os.environ, is_http2: bool = True,
    ) -> None:
        check(not token or not token_file, "both a token and a token file are given", "give one of them")
        arguments = {"ca": ca, "tokenFile": token_file, "token": token, "cert": cert, "key": key}
        named = _context(context, variables, needs_gateway=not url) if context else {}
        names = {"ca": "CA", "tokenFile": "TOKEN_FILE", "token": "TOKEN", "cert": "CERT", "key": "KEY"}
        values = {member: variables.get(f"WAKEGATE_{name}") or None for member, name in names.items()}
        url = url or named.get("gateway") or variables.get("WAKEGATE_URL")
        used = {} if url else _context(None, variables)
        url = url or used.get("gateway")

        def first(*members: str) -> Mapping[str, Any]:
            """Returns the first source that has one of these members."""
            sources = (arguments, named, values, used)
            return next((source for source in sources if any(map(source.get, members))), {})

        self.ca: Optional[str] = first("ca").get("ca")
        self.token_file: Optional[str] = first("tokenFile", "token").get("tokenFile")
        self.token: Optional[str] = None if self.token_file else first("token").get("token")
        self.cert: Optional[str] = first("cert").get("cert")
        self.key: Optional[str] = key or first("cert").get("key")
        #: The folder of the `wakegate dev` to look for; None if another source names the gateway.
        self.folder, self._named_ca, self.is_http2 = None if url else ".wakegate", self.ca, is_http2
        self.url = self._checked(url or DEFAULT_URL)
        self.find()
        #: The last token sent, and the last one accepted ("" for none); then the time since which they have failed.
        self._shown = self._taken = ""
        self._since = -math.inf  # No token has worked yet.

    def find(self) -> bool:
        """Looks for the `wakegate dev` of the folder again, unless another source names the gateway. Returns true if
        its address has changed. The last address remains if none runs."""
        running = _running(self.folder) if self.folder else {}
        former, scheme = (self.url, self.socket, self.ca), "https" if running.get("edge") else "http"
        address = str(running.get("edge") or running.get("plain") or "")
        if address:
            self.ca = self._named_ca or running.get("ca")
            self.url = self._checked(address if address.startswith("unix:") else f"{scheme}://{address}")
        return former != (self.url, self.socket, self.ca)

    def _checked(self, url: str) -> str:
        self.socket: Optional[str] = None
        address = url.rstrip("/")
        if url.startswith("unix:/"):
            self.socket = url.removeprefix("unix:")
            address = "https://localhost" if self.ca else "http://localhost"
        remedy = "write https://HOST:PORT, http://HOST:PORT or unix:/PATH"
        check(re.fullmatch(r"https?://[^/?#@\s]+", address), f'the gateway is "{url}"', remedy)
        return address

    def transport(self) -> httpx.AsyncHTTPTransport:
        """Creates a transport with one HTTP/2 connection, which ignores the environment's proxies."""
        named = self.ca or "the system's authorities"
        try:
            trust = ssl.create_default_context(cafile=self.ca)
            if self.cert:
                named = self.cert
                trust.load_cert_chain(self.cert, self.key)
        except (OSError, ValueError) as error:
            raise self._bad(f"{named}: {error}", "name a PEM file that this user may read") from error
        return httpx.AsyncHTTPTransport(verify=trust, http1=not self.is_http2, http2=self.is_http2, uds=self.socket)

    def headers(self) -> Dict[str, str]:
        """Returns the header with the token. A token's file is read for each request, so it may be replaced."""
        if not self.token and not self.token_file:
            return {}
        try:
            text = Path(self.token_file).read_text(encoding="utf-8") if self.token_file else self.token or ""
        except (OSError, ValueError) as error:
            message = f"the token's file {self.token_file} cannot be read ({error})"
            raise self._bad(message, "see its owner and mode") from error
        if len(text.split()) != 1:
            remedy = "a token is one word, as `wakegate token issue` shows it"
            raise self._bad(f"this token has {len(text.split())} words", remedy)
        if not (text.strip().isascii() and text.strip().isprintable()):
            raise self._bad("this token has other characters than printable ASCII", "copy it again")
        self._shown = text.strip()
        return {"authorization": f"bearer {self._shown}"}

    def _bad(self, message: str, remedy: str) -> WakeGateError:
        return WakeGateError("badCredentials", message, remedy, is_passing=self._is_transient())

    def accepted(self) -> None:
        """Records that the gateway accepted the credentials."""
        self._taken, self._since = self._shown, math.inf

    def may_pass(self, status: int) -> bool:
        """True if a refusal with this status may be temporary, because a token's file may be incomplete."""
        is_other = bool(self.token_file) and self._taken not in ("", self._shown)
        return status == 401 and is_other and self._is_transient()

    def _is_transient(self) -> bool:
        """True for half a minute after working credentials failed, because their files may be incomplete."""
        self._since = min(self._since, time.monotonic())
        return time.monotonic() - self._since < 30


def _context(name: Optional[str], variables: Mapping[str, str], needs_gateway: bool = True) -> Dict[str, Any]:
    """Returns the context with this name, or the one in use; an empty one if none is in use."""
    base = variables.get("XDG_CONFIG_HOME", "")
    if not base.startswith("/"):
        base = variables.get("HOME", "") + "/.config"
    path = Path(base) / "wakegate/contexts.json"
    contexts: Dict[str, Dict[str, Any]] = {}
    if base.startswith("/") and path.exists():
        text = f"others may use {path}, which may hold tokens"
        check(not path.stat().st_mode & 0o077, text, f"run: chmod 600 {path}", "badCredentials")
        try:
            file = json.loads(path.read_text(encoding="utf-8"))
            contexts, name = file["contexts"], name or file.get("current")
        except (OSError, ValueError, KeyError, TypeError) as error:
            text = f"{path} holds no contexts"
            raise WakeGateError("badCredentials", text, "remove it, and add the contexts anew") from error
    if not name:
        return {}
    remedy = "choose one of " + ", ".join(sorted(contexts)) if contexts else "see `wakegate context add --help`"
    check(name in contexts, f"the context {name} does not exist", remedy)
    has_gateway = isinstance(contexts[name].get("gateway"), str) or not needs_gateway
    check(has_gateway, f"the context {name} names no edge", "name the gateway, or add the context anew")
    return contexts[name]


def _running(folder: str) -> Dict[str, Any]:
    """Returns the file that `wakegate dev` wrote in its folder; nothing if its process has ended."""
    file: Dict[str, Any] = {}
    try:
        file = json.loads((Path(folder) / "gateway.json").read_text(encoding="utf-8"))
        os.kill(file["pid"], 0)
    except PermissionError:  # Another user's process, or another user's file.
        return file
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return file
