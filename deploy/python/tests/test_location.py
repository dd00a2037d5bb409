"""The sources of a worker's gateway address, in the order of the command line tool."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, List

import pytest

from wakegate import WakeGateError
from wakegate._gateway import Event, EventReader
from wakegate.errors import DEFAULT_URL
from wakegate.location import Location


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def remember(home: Path, current: str = "", **contexts: Dict[str, Any]) -> Dict[str, str]:
    file = home / "wakegate/contexts.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"current": current or None, "contexts": contexts}))
    file.chmod(0o600)
    return {"XDG_CONFIG_HOME": str(home)}


def test_order(home: Path) -> None:
    assert Location(variables={}).url == DEFAULT_URL
    (home / ".wakegate").mkdir()
    file = {"pid": os.getpid(), "ca": "/dev.pem", "edge": "127.0.0.1:1", "plain": "127.0.0.1:2"}
    (home / ".wakegate/gateway.json").write_text(json.dumps(file))
    found = Location(variables={})
    assert (found.url, found.ca) == ("https://127.0.0.1:1", "/dev.pem")
    context = {"gateway": "https://staging:1", "ca": "/staging.pem", "tokenFile": "/staging.token"}
    variables = remember(home, "staging", staging=context, other={"gateway": "https://other:1", "token": "o"})
    found = Location(variables=variables)
    assert (found.url, found.ca, found.token_file) == ("https://staging:1", "/staging.pem", "/staging.token")
    variables.update(WAKEGATE_URL="https://variable:1/", WAKEGATE_TOKEN="t")
    found = Location(variables=variables)
    assert (found.url, found.ca, found.token, found.token_file) == ("https://variable:1", None, "t", None)
    found = Location(variables=variables, context="other")
    assert (found.url, found.token) == ("https://other:1", "o")
    found = Location("unix:/run/gateway", variables=variables)
    assert (found.url, found.socket, found.token) == ("http://localhost", "/run/gateway", "t")


def test_the_folder_is_looked_at_again_if_nothing_else_names_a_gateway(home: Path) -> None:
    location, named = Location(variables={}), Location("https://named:1", variables={})
    assert not location.find()
    (home / ".wakegate").mkdir()
    file = home / ".wakegate/gateway.json"
    file.write_text(json.dumps({"pid": os.getpid(), "ca": "/dev.pem", "edge": "127.0.0.1:1"}))
    assert (location.find(), location.url, location.ca) == (True, "https://127.0.0.1:1", "/dev.pem")
    assert not location.find()
    file.unlink()  # The gateway has ended, and may return.
    assert (location.find(), location.url, location.ca) == (False, "https://127.0.0.1:1", "/dev.pem")
    file.write_text(json.dumps({"pid": os.getpid(), "ca": "/dev.pem", "edge": "unix:/run/edge"}))
    assert (location.find(), location.url, location.socket) == (True, "https://localhost", "/run/edge")
    assert (named.find(), named.url, named.ca) == (False, "https://named:1", None)
    location = Location(ca="/named.pem", variables={})
    assert (location.url, location.ca) == ("https://localhost", "/named.pem")


def test_variables(home: Path) -> None:
    context = {"gateway": "https://staging:1", "tokenFile": "/c.token", "cert": "/c.pem", "key": "/c.key"}
    variables = remember(home, "staging", staging=context)
    variables.update(WAKEGATE_TOKEN_FILE="/v.token", WAKEGATE_TOKEN="v", WAKEGATE_KEY="/v.key")
    found = Location(variables=variables)
    assert (found.token_file, found.token) == ("/v.token", None)
    assert (found.cert, found.key) == ("/c.pem", "/c.key")  # A key alone is none.
    variables.update(WAKEGATE_CERT="/v.pem")
    found = Location(variables=variables)
    assert (found.cert, found.key) == ("/v.pem", "/v.key")
    found = Location(token="a", cert="/a.pem", variables=variables)
    assert (found.token, found.token_file, found.cert, found.key) == ("a", None, "/a.pem", None)
    found = Location(context="staging", variables=variables)
    assert (found.token_file, found.cert, found.key) == ("/c.token", "/c.pem", "/c.key")


def test_faults_name_a_remedy(home: Path) -> None:
    def fault(*arguments: Any, **options: Any) -> str:
        with pytest.raises(WakeGateError) as caught:
            Location(*arguments, **{"variables": {}, **options}).headers()
        return str(caught.value)

    assert "write https://HOST:PORT" in fault("ftp://host")
    assert "give one of them" in fault(token="a", token_file="b")
    assert "as `wakegate token issue` shows it" in fault(token="a b")
    variables = remember(home, staging={"admin": "http://a:1"})
    assert "choose one of staging" in fault(context="none", variables=variables)
    assert "names no edge" in fault(context="staging", variables=variables)
    (home / "wakegate/contexts.json").chmod(0o644)
    assert "chmod 600" in fault(context="staging", variables=variables)


def test_a_token_file_may_be_replaced(home: Path) -> None:
    (home / "token").write_text("first\n")
    location = Location(token_file="token", variables={})
    assert location.headers() == {"authorization": "bearer first"}
    assert not location.may_pass(401)  # The gateway never accepted it.
    location.accepted()
    (home / "token").write_text("sec")
    assert location.headers() == {"authorization": "bearer sec"}
    assert location.may_pass(401)  # It may be half of a token.
    (home / "token").write_text("")
    with pytest.raises(WakeGateError) as caught:
        location.headers()
    assert caught.value.is_passing


def test_events_are_divided_at_every_byte() -> None:
    text = ": hello\n\nevent: wake\nid: 1\ndata: a\ndata: b\n\ndata:\u2028ä\r\n\r\n".encode()
    for size in range(1, len(text) + 1):
        reader = EventReader()
        found: List[Event] = []
        for start in range(0, len(text), size):
            found += reader.feed(text[start : start + size])
        assert found == [("wake", "a\nb"), ("message", "\u2028ä")]


def test_a_token_that_no_header_can_carry_is_refused_without_showing_it() -> None:
    with pytest.raises(WakeGateError) as caught:
        Location(token="sécret").headers()
    assert caught.value.code == "badCredentials" and "printable ASCII" in caught.value.message
    assert "sécret" not in str(caught.value)
