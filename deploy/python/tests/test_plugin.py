"""The fixture `wakegate`, and a worker next to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from wakegate.pytest_plugin import DEVICE, WakeGate

pytest_plugins = ["pytester"]


def test_a_push_wakes(wakegate: WakeGate) -> None:
    answer = wakegate.push(payload={"aps": {"content-available": 1}, "edition": 7})
    assert (answer.status, answer.reason) == (200, None)
    push = wakegate.wait_for_wake()
    assert (push.apns_id, push.payload["edition"], push.device) == (answer.apns_id, 7, DEVICE)
    assert wakegate.outcome(answer.apns_id) == "completed"


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
