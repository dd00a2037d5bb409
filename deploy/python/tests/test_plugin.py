"""The fixture `wakegate`, and a worker next to it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Iterator

import httpx
import pytest

from wakegate.pytest_plugin import DEVICE, WakeGate

pytest_plugins = ["pytester"]


def test_a_push_wakes(wakegate: WakeGate) -> None:
    answer = wakegate.push(payload={"aps": {"content-available": 1}, "edition": 7})
    assert (answer.status, answer.reason) == (200, None)
    push = wakegate.wait_for_wake()
    assert (push.apns_id, push.payload["edition"], push.device) == (answer.apns_id, 7, DEVICE)
    assert wakegate.outcome(answer.apns_id) == "completed"


def test_an_answer_has_the_warning_of_a_push_that_apple_calls_wrong(wakegate: WakeGate) -> None:
    assert wakegate.push().warning is None
    assert (wakegate.push(priority=10).warning or "").startswith("background-priority")


def test_an_empty_payload_is_pushed_as_it_is(wakegate: WakeGate) -> None:
    wakegate.push(payload={})
    assert wakegate.ask("GET", "/v1/stats")["pushes"]["accepted"] == 0


def test_the_outcome_of_no_push_is_an_error(wakegate: WakeGate) -> None:
    for name in ("typo", "9c530159-7c62-9065-da2d-73b7e9c7d338"):
        with pytest.raises(LookupError, match="UnknownPush"):
            wakegate.outcome(name)


@pytest.mark.wakegate(launch_interval=900)
def test_a_wait_in_vain_gives_each_device_a_line(wakegate: WakeGate) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"within 0.2 s\n  nothing was pushed to it$"):
        wakegate.wait_for_wake(timeout=0.2)
    other = "a1" * 16
    for device in (DEVICE, other):
        wakegate.push(device)
        wakegate.wait_for_wake()
    for device in (DEVICE, DEVICE, other):
        wakegate.push(device)
    with pytest.raises(pytest.fail.Exception) as caught:
        wakegate.wait_for_wake(timeout=0.2)
    first, *devices, last = str(caught.value).splitlines()
    assert sorted(each[:12] for each in devices) == ["  0badcafe..", "  a1a1a1a1.."]
    assert all("launches of priority 5 are 900 s apart" in each for each in devices)
    assert "no worker" not in str(caught.value)
    assert last.endswith("write wait_for_wake(..., pass_interval=True)")


def test_comments_of_the_gateway_do_not_prolong_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now, limits = [100.0], []

    def answer(request: httpx.Request) -> httpx.Response:
        def comments() -> Iterator[bytes]:
            for _ in range(2):
                yield b": alive\n\n"
                now[0] += 4.75
                limits.append(request.extensions["timeout"].get("read"))
            raise httpx.ReadTimeout("nothing came")

        return httpx.Response(200, content=comments())

    gateway = WakeGate.__new__(WakeGate)
    monkeypatch.setattr(gateway, "_connection", lambda: httpx.Client(
        base_url="https://gateway", transport=httpx.MockTransport(answer)
    ))
    monkeypatch.setattr(gateway, "_why", lambda topic: "")
    monkeypatch.setattr("wakegate.pytest_plugin.time", SimpleNamespace(monotonic=lambda: now[0]))
    with pytest.raises(pytest.fail.Exception, match="within 10 s"):
        gateway.wait_for_wake(timeout=10)
    assert limits == [5.25, 0.5]


def test_pushes_of_one_device_follow_at_once(wakegate: WakeGate) -> None:
    for edition in range(3):
        wakegate.push(payload={"aps": {"content-available": 1}, "edition": edition})
        assert wakegate.wait_for_wake().payload["edition"] == edition
    assert wakegate.ask("GET", "/v1/stats")["wakes"]["results"]["lost"] == 0


@pytest.mark.wakegate(launch_interval=900)
def test_a_launch_interval_need_not_be_waited_for(wakegate: WakeGate) -> None:
    wakegate.push()
    wakegate.wait_for_wake()
    second = wakegate.push()
    assert second.disposition == "scheduled"
    assert "15 min" in wakegate.explain()["why"] or wakegate.explain()["nextEligibleAt"]
    with pytest.raises(pytest.fail.Exception, match="no wake of com.example.app came within 0.3 s"):
        wakegate.wait_for_wake(timeout=0.3)
    assert wakegate.outcome(second.apns_id, timeout=0) == "pending"
    assert wakegate.wait_for_wake(pass_interval=True).apns_id == second.apns_id


@pytest.mark.wakegate(faults=[{"when": {"nth": 1}, "then": {"reason": "ServiceUnavailable"}}])
def test_faults(wakegate: WakeGate) -> None:
    assert wakegate.push()[0:3:2] == (503, "ServiceUnavailable")
    assert wakegate.push().status == 200
    wakegate.faults([{"then": {"reason": "Unregistered"}}])
    assert wakegate.push().status == 410


def test_a_failure_prints_the_log(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(wakegate):\n    wakegate.push()\n    assert False")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*wakegate dev*", "*push*com.example.app*"])


def test_without_a_program_it_skips(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WAKEGATE_PROGRAM", str(tmp_path / "none"))
    pytester.makepyfile("def test_it(wakegate): pass")
    result = pytester.runpytest_subprocess("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*set WAKEGATE_PROGRAM to the path of the program*"])


def test_wrong_faults_leave_no_gateway_behind(pytester: pytest.Pytester) -> None:
    marker = "@pytest.mark.wakegate(faults=[{'then': {'resaon': 'Unregistered'}}])"
    pytester.makepyfile(f"import pytest\n{marker}\ndef test_it(wakegate): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*rules*0*.then.resaon: is not a key; did you mean reason*"])
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")
    file, = pytester.path.rglob("gateway.json")
    with pytest.raises(ProcessLookupError):
        os.kill(json.loads(file.read_text())["pid"], signal.SIGKILL)


def test_a_wrong_marker_names_what_it_takes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.wakegate(interval=9)\ndef test_it(wakegate): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["the marker wakegate takes launch_interval, faults, settings, not interval"])
