"""Workers of a real gateway."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Dict, List, Optional, Tuple

import httpx
import pytest

from wakegate import Push, Result, Task, TaskError, TransferError, WakeGateError, Worker
from wakegate.errors import DEFAULT_URL, raise_unanswered
from wakegate.pytest_plugin import DEVICE, WakeGate

from scripted import ScriptedGateway

TOPIC = "com.example.app"


def eventually(holds: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.02)


@contextlib.asynccontextmanager
async def running(worker: Worker, gateway: WakeGate) -> AsyncIterator[None]:
    """Runs a worker, and ends it properly."""
    task = asyncio.ensure_future(worker.serve())
    connected = lambda: gateway.ask("GET", "/v1/stats")["workers"]["connected"] == 1  # noqa: E731
    await asyncio.to_thread(eventually, connected, "a worker")
    try:
        yield
    finally:
        worker.stop()
        await asyncio.wait_for(task, 10)


def make(gateway: WakeGate, **options: Any) -> Worker:
    return Worker(gateway.url, topic=TOPIC, ca=gateway.ca, devices=[DEVICE], **options)


@pytest.mark.wakegate(settings={"policy.maxAttempts": 1})
def test_the_log_says_once_why_a_wake_ended(wakegate: WakeGate, caplog: pytest.LogCaptureFixture) -> None:
    worker, started = make(wakegate), threading.Event()

    @worker.push
    async def handle(push: Push) -> Result:
        started.set()
        await asyncio.sleep(60)
        return Result.NEW_DATA

    async def play() -> None:
        async with running(worker, wakegate):
            wakegate.push()
            assert await asyncio.to_thread(started.wait, 10)
            wakegate.ask("POST", f"/v1/devices/{DEVICE}/simulate-expiration")
            await asyncio.to_thread(eventually, lambda: "was ended" in caplog.text, "a line")

    asyncio.run(play())
    lines = [each.getMessage() for each in caplog.records if each.name == "wakegate" and "(wake " in each.getMessage()]
    assert len(lines) == 1 and re.fullmatch(
        r"push of com.example.app \(wake [0-9a-f]{32}\) was ended: an operator ended it", lines[0]
    ), lines


def test_sync_and_async_handlers(wakegate: WakeGate) -> None:
    worker = make(wakegate)
    threads: List[Optional[str]] = []

    @worker.push
    def handle(push: Push) -> Result:
        threads.append(threading.current_thread().name)
        assert push.call(push.extend(60)) > 55
        return Result.NO_DATA

    @worker.app_refresh("com.example.app.refresh")
    async def refresh(task: Task) -> None:
        await task.scheduler.submit(task.identifier, earliest_begin=900)

    @worker.session("photos")
    async def photos(task: Task) -> bool:
        with pytest.raises(WakeGateError, match="await it instead"):
            task.call(asyncio.get_running_loop().create_future())  # It would wait for itself.
        return task.count == 3

    async def play() -> None:
        async with running(worker, wakegate):
            pushed = wakegate.push()
            assert await asyncio.to_thread(wakegate.outcome, pushed.apns_id) == "completed"
            submission = await worker.scheduler.submit("com.example.app.refresh")
            assert submission.disposition in ("launched", "scheduled")
            await worker.scheduler.transfers_finished("photos", 3)
            done = lambda: wakegate.ask("GET", "/v1/stats")["tasks"]["results"]["success"] == 1  # noqa: E731
            await asyncio.to_thread(eventually, done, "a refresh")
            done = lambda: wakegate.ask("GET", "/v1/stats")["sessions"]["completed"] == 3  # noqa: E731
            await asyncio.to_thread(eventually, done, "a session")
            assert [each["identifier"] for each in await worker.scheduler.pending()] == ["com.example.app.refresh"]
            await worker.scheduler.cancel_all()

    asyncio.run(play())
    assert threads == ["wakegate-handler"]
    assert wakegate.ask("GET", "/v1/stats")["wakes"]["results"]["noData"] == 1


def test_progress_and_conditions(wakegate: WakeGate) -> None:
    worker = make(wakegate)
    seen: Dict[str, Any] = {}

    @worker.continued("com.example.app.export.*")
    def export(task: Task) -> None:
        task.progress.total = 100
        for _ in range(100):
            task.progress.add()
        task.progress.update(completed=0, total=2)
        part = task.progress.child(2, 100)
        for _ in range(100):
            part.add()
        assert task.progress.completed == 2
        task.progress.subtitle = "done"

    @worker.conditions
    def conditions(device: str, fields: Dict[str, Any]) -> None:
        seen[device] = fields["appState"]

    async def play() -> None:
        await worker.register(DEVICE)
        async with running(worker, wakegate):
            assert (await worker.report(DEVICE, appState="active"))["appState"] == "active"
            await worker.scheduler.submit("com.example.app.export.films", "continued", title="Exporting")
            done = lambda: wakegate.ask("GET", "/v1/stats")["tasks"]["results"]["success"] == 1  # noqa: E731
            await asyncio.to_thread(eventually, done, "an export")

    asyncio.run(play())
    assert seen == {DEVICE: "active"}


@pytest.mark.wakegate(settings={"policy.executionWindow": 2})
def test_a_handler_is_cancelled_before_its_deadline_and_its_result_counts(wakegate: WakeGate) -> None:
    worker = make(wakegate)
    ends: List[Tuple[Optional[str], bool]] = []

    @worker.push
    async def handle(push: Push) -> Result:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            ends.append((push.expiration_reason, 0 < push.time_left < 1.5))
            await asyncio.sleep(0.1)  # Saves its work.
        return Result.NO_DATA

    async def play() -> None:
        async with running(worker, wakegate):
            pushed = wakegate.push()
            assert await asyncio.to_thread(wakegate.outcome, pushed.apns_id) == "completed"

    asyncio.run(play())
    assert ends == [("deadline", True)]
    assert wakegate.ask("GET", "/v1/stats")["wakes"]["results"]["noData"] == 1


@pytest.mark.wakegate(settings={"policy.executionWindow": 1})
def test_a_handler_keeps_its_wake_alive(wakegate: WakeGate) -> None:
    worker = make(wakegate)

    @worker.push
    async def handle(push: Push) -> Result:
        with push.extended():
            await asyncio.sleep(1.5)
        return Result.NEW_DATA

    async def play() -> None:
        async with running(worker, wakegate):
            pushed = wakegate.push()
            assert await asyncio.to_thread(wakegate.outcome, pushed.apns_id) == "completed"

    asyncio.run(play())


def test_many_wakes_leave_nothing_behind(wakegate: WakeGate) -> None:
    worker = Worker(wakegate.url, topic=TOPIC, ca=wakegate.ca, slots=4)

    @worker.push
    async def handle(push: Push) -> Result:
        return Result.NEW_DATA

    def handled(count: int) -> None:
        for number in range(count):
            wakegate.push(f"{number:032x}", topic=TOPIC)
        done = lambda: wakegate.ask("GET", "/v1/topics")["topics"][0]["inFlight"] == 0  # noqa: E731
        eventually(done, "results")

    async def held() -> Tuple[int, int]:
        """Returns the numbers of open files and of tasks once every answer has arrived."""
        assert worker._session is not None
        while worker._session.wakes or worker._session._jobs:
            await asyncio.sleep(0.02)
        return len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())

    async def play() -> None:
        async with running(worker, wakegate):
            await asyncio.to_thread(handled, 50)
            before = await held()
            await asyncio.to_thread(handled, 500)
            assert await held() == before

    asyncio.run(play())
    results = wakegate.ask("GET", "/v1/stats")["wakes"]["results"]
    assert (results["newData"], results["lost"]) == (550, 0)


PROGRAM = """
import time
from wakegate import Result, Worker
worker = Worker(topic="com.example.app")
@worker.push
def handle(push):
    print("begun", flush=True)
    time.sleep(1)
    return Result.NEW_DATA
worker.run()
print("ended")
"""


def test_sigterm_drains(wakegate: WakeGate) -> None:
    def block() -> None:  # Some parents do this, for example threads of Swift's Foundation.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    command, env = [sys.executable, "-c", PROGRAM], {**os.environ, **wakegate.env}
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True, preexec_fn=block)
    assert process.stdout is not None
    try:
        pushed = wakegate.push()
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=10)
        assert output == "ended\n"
        assert errors.splitlines()[-1] == "stopping; 1 running wakes may end; a second signal cancels them"
    finally:
        process.kill()
    assert process.returncode == 0
    assert wakegate.outcome(pushed.apns_id) == "completed"
    assert wakegate.ask("GET", "/v1/stats")["wakes"]["results"]["lost"] == 0


def test_errors_name_a_remedy(wakegate: WakeGate, tmp_path: Path) -> None:
    async def handle(push: Push) -> Result:
        return Result.NEW_DATA

    def failure(**options: Any) -> WakeGateError:
        worker = Worker(wakegate.url, topic=TOPIC, **options)
        worker.push(handle)
        with pytest.raises(WakeGateError) as caught:
            worker.run()
        assert caught.value.remedy
        return caught.value

    assert failure().code == "untrusted"
    assert failure(ca=str(tmp_path / "none")).code == "badCredentials"
    assert failure(ca=wakegate.ca, token_file=str(tmp_path / "none")).code == "badCredentials"
    with pytest.raises(WakeGateError, match="no handler is registered"):
        make(wakegate).run()
    worker = Worker(wakegate.url, topic=TOPIC, ca=wakegate.ca)
    with pytest.raises(TaskError) as caught:
        asyncio.run(worker.scheduler.submit("a"))
    assert caught.value.code == "noDevice"
    with pytest.raises(TaskError) as caught:
        asyncio.run(worker.scheduler_for("00" * 16).submit("a"))
    assert (caught.value.code, caught.value.status) == ("unknownDevice", 404)
    with pytest.raises(TaskError) as caught:
        asyncio.run(worker.scheduler_for("00" * 16).submit("a b"))
    assert caught.value.code == "badTaskRequest"
    with pytest.raises(TaskError, match="earliest_begin is seconds, or a datetime") as caught:
        asyncio.run(worker.scheduler_for("00" * 16).submit("a", earliest_begin="5m"))  # type: ignore[arg-type]
    assert caught.value.code == "badTaskRequest"


def answer(push: Push) -> Result:
    return Result.NEW_DATA


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which nothing names a gateway."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    for name in ("URL", "CA", "TOKEN_FILE", "TOKEN", "CERT", "KEY"):
        monkeypatch.delenv(f"WAKEGATE_{name}", raising=False)
    return folder


@pytest.mark.parametrize("is_listening", [False, True])
def test_a_worker_waits_for_the_gateway_of_its_folder(
    wakegate: WakeGate, elsewhere: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch,
    is_listening: bool,
) -> None:
    monkeypatch.setattr("wakegate.location.DEFAULT_URL", wakegate.url if is_listening else "https://127.0.0.1:1")
    worker = Worker(topic=TOPIC)
    worker._timing.backoff = (0.1, 0.1)
    worker.push(answer)
    connected = lambda: wakegate.ask("GET", "/v1/stats")["workers"]["connected"] == 1  # noqa: E731
    caplog.set_level(logging.DEBUG, "wakegate")

    def attempts() -> List[str]:
        return [each.levelname for each in caplog.records if "trying again" in each.getMessage()]

    async def play() -> None:
        task = asyncio.ensure_future(worker.serve())
        if is_listening:  # The folder does not name the gateway yet, so nothing names its authority.
            await asyncio.sleep(0.5)
        else:
            await asyncio.to_thread(eventually, lambda: len(attempts()) > 3, "attempts")
        (elsewhere / ".wakegate").symlink_to(Path(wakegate.ca).parent)
        await asyncio.to_thread(eventually, connected, "a worker")
        worker.stop()
        await asyncio.wait_for(task, 10)

    asyncio.run(play())
    assert attempts() == ["WARNING"] + ["DEBUG"] * (len(attempts()) - 1)


def test_an_untrusted_gateway_that_the_folder_does_not_name_is_fatal(
    wakegate: WakeGate, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wakegate.location.DEFAULT_URL", wakegate.url)
    worker = Worker(topic=TOPIC)
    worker.push(answer)
    with pytest.raises(WakeGateError) as caught:
        worker.run()
    assert caught.value.code == "untrusted"


def test_a_warning_is_repeated_only_if_the_reason_changes(caplog: pytest.LogCaptureFixture) -> None:
    subscribe = f"GET /v1/topics/{TOPIC}/wakes"
    busy, stopping = ({"status": 503, "body": {"reason": each}} for each in ("ServiceUnavailable", "Shutdown"))
    script: List[Dict[str, Any]] = [{"expect": subscribe, "answer": each} for each in (busy, busy, busy, stopping)]
    script += [{"expect": subscribe}, {"end": "stream"}, {"expect": subscribe, "answer": stopping}]
    script += [{"expect": subscribe, "answer": {"status": 403, "body": {"reason": "Forbidden"}}}]
    caplog.set_level(logging.DEBUG, "wakegate")

    async def play() -> None:
        async with ScriptedGateway(script, lambda: worker.stop()) as gateway:
            worker = Worker(gateway.url, topic=TOPIC)
            worker._timing.backoff = worker._timing.first_wait = (0.05, 0.1)
            worker.push(answer)
            playing = asyncio.ensure_future(gateway.play())
            with pytest.raises(WakeGateError, match="Forbidden"):
                await asyncio.wait_for(worker.serve(), 20)
            await playing

    asyncio.run(play())
    records = [each for each in caplog.records if "trying again" in each.getMessage()]
    levels = ["WARNING", "DEBUG", "DEBUG", "WARNING", "WARNING", "WARNING"]
    assert [each.levelname for each in records] == levels, caplog.text
    assert "Shutdown" in records[3].getMessage() and "ended the stream" in records[4].getMessage()


def test_a_fatal_error_is_short(wakegate: WakeGate) -> None:
    env = {**os.environ, **wakegate.env, "WAKEGATE_CA": ""}
    ended = subprocess.run([sys.executable, "-c", PROGRAM], env=env, stderr=subprocess.PIPE, text=True, timeout=30)
    lines = ended.stderr.splitlines()
    assert ended.returncode == 1 and len(lines) < 10, ended.stderr
    assert lines[-1].startswith(f"wakegate.errors.WakeGateError: untrusted: the certificate of {wakegate.url} is not")
    assert lines[-1].endswith("; name its authority in WAKEGATE_CA (`wakegate dev` keeps it in .wakegate/ca.pem)")


def test_an_unreachable_gateway_has_a_remedy() -> None:
    for url, start in ((DEFAULT_URL, "start one with `wakegate dev`"), ("https://127.0.0.1:1", "start it")):
        with pytest.raises(WakeGateError) as caught:
            raise_unanswered(httpx.ConnectError("refused"), url)
        assert caught.value.remedy == f"{start}, or name another with WAKEGATE_URL"
    with pytest.raises(WakeGateError) as caught:
        raise_unanswered(httpx.ConnectError("Permission denied"), "unix:/run/agent", "transfers agent")
    assert TransferError.from_error(caught.value).remedy == "start an agent of your own with `wakegate transfers`"


@pytest.mark.wakegate(settings={"policy.maxAttempts": 3})
def test_a_push_handler_that_returns_no_result(wakegate: WakeGate, caplog: pytest.LogCaptureFixture) -> None:
    worker = make(wakegate)
    values: List[Any] = ["newData", True, None]

    @worker.push
    async def handle(push: Push) -> Result:
        return values.pop()  # type: ignore[no-any-return]

    async def play() -> None:
        async with running(worker, wakegate):
            pushed = wakegate.push()
            assert await asyncio.to_thread(wakegate.outcome, pushed.apns_id) == "completed"

    asyncio.run(play())
    lines = [each.getMessage().partition(": ")[2] for each in caplog.records if each.levelname == "ERROR"]
    remedy = "return Result.NEW_DATA, Result.NO_DATA or Result.FAILED"
    assert lines == [f"the push handler returned {value}; {remedy}" for value in ("None", "bool")]
    results = wakegate.ask("GET", "/v1/stats")["wakes"]["results"]
    assert (results["failed"], results["newData"]) == (2, 1)


def test_a_refused_progress_report_is_logged_once_and_reporting_continues(caplog: pytest.LogCaptureFixture) -> None:
    reports = [{"status": 400, "body": {"reason": "BadProgress", "message": "total is 1."}}] * 2
    answers = [*reports, {"status": 200, "body": {"deadline": 4000000000000}}]
    wake = {"wake": "w1", "kind": "continued", "task": "com.example.app.export"}
    script: List[Dict[str, Any]] = [{"expect": f"GET /v1/topics/{TOPIC}/wakes"}, {"wake": wake}]
    for number, answer in enumerate(answers):
        body = {"completed": number + 1, "total": 3}
        script.append({"expect": "POST /v1/wakes/w1/progress", "body": body, "answer": answer})
    script += [{"expect": "POST /v1/wakes/w1", "body": {"success": True}}, {"stop": True}]
    script += [{"expect": "POST /v1/streams/s1/drain"}, {"end": "stream"}]

    async def export(task: Task) -> None:
        for number in range(3):
            task.progress.update(completed=number + 1, total=3)
            await asyncio.sleep(0.4)

    async def play() -> None:
        async with ScriptedGateway(script, lambda: worker.stop()) as gateway:
            worker = Worker(gateway.url, topic=TOPIC)
            worker.continued("com.example.app.export")(export)
            await asyncio.wait_for(asyncio.gather(worker.serve(), gateway.play()), 20)

    asyncio.run(play())
    lines = [each.getMessage() for each in caplog.records if "progress" in each.getMessage()]
    assert lines == [
        "a progress report of continued com.example.app.export (wake w1) was refused: "
        "refused: the gateway answered 400 BadProgress; total is 1."
    ]


def test_a_push_with_an_integer_of_any_length_reaches_its_handler() -> None:
    wake = {"wake": "w1", "device": "0" * 32, "topic": TOPIC, "kind": "push", "deadline": 4000000000000}
    data = json.dumps({**wake, "timeLeft": 30000, "payload": {"n": 0}}).replace('"n": 0', '"n": 1' + "0" * 5000)
    script: List[Dict[str, Any]] = [
        {"expect": f"GET /v1/topics/{TOPIC}/wakes"}, {"send": f"event: wake\ndata: {data}\n\n"},
        {"expect": "POST /v1/wakes/w1", "body": {"result": "newData"}}, {"stop": True},
        {"expect": "POST /v1/streams/s1/drain"}, {"end": "stream"},
    ]  # fmt: skip
    numbers: List[Any] = []

    async def play() -> None:
        async with ScriptedGateway(script, lambda: worker.stop()) as gateway:
            worker = Worker(gateway.url, topic=TOPIC)

            @worker.push
            async def handle(push: Push) -> Result:
                numbers.append(push.payload["n"])
                return Result.NEW_DATA

            await asyncio.wait_for(asyncio.gather(worker.serve(), gateway.play()), 20)

    asyncio.run(play())
    assert numbers == [float("inf")]


def test_a_worker_takes_no_wakes_after_its_drain_was_refused_for_now() -> None:
    busy = {"status": 503, "body": {"reason": "ServiceUnavailable", "message": "later"}}
    script: List[Dict[str, Any]] = [
        {"expect": f"GET /v1/topics/{TOPIC}/wakes"}, {"wake": {"wake": "w1"}}, {"begun": "w1"}, {"stop": True},
        {"expect": "POST /v1/streams/s1/drain", "answer": busy}, {"pause": 0.1}, {"wake": {"wake": "w2"}},
        {"pause": 0.1}, {"expect": "POST /v1/wakes/w1", "body": {"result": "newData"}},
    ]  # fmt: skip
    handled: List[str] = []

    async def play() -> None:
        async with ScriptedGateway(script, lambda: worker.stop()) as gateway:
            worker = Worker(gateway.url, topic=TOPIC)

            @worker.push
            async def handle(push: Push) -> Result:
                handled.append(push.id)
                gateway.begun(push.id)
                await asyncio.sleep(0.6)
                return Result.NEW_DATA

            await asyncio.wait_for(asyncio.gather(worker.serve(), gateway.play()), 20)

    asyncio.run(play())
    assert handled == ["w1"]


class Unusual(BaseException):
    """An exception outside of Exception, like that of pytest.fail()."""


async def end_unusually(push: Push) -> Result:
    raise Unusual


def end_cancelled(push: Push) -> Result:
    raise concurrent.futures.CancelledError


@pytest.mark.parametrize("handle", [end_cancelled, end_unusually])
def test_a_handler_that_ends_unusually_reports_failed(handle: Callable[[Push], Any]) -> None:
    script: List[Dict[str, Any]] = [
        {"expect": f"GET /v1/topics/{TOPIC}/wakes"}, {"wake": {"wake": "w1"}},
        {"expect": "POST /v1/wakes/w1", "body": {"result": "failed"}}, {"stop": True},
        {"expect": "POST /v1/streams/s1/drain"}, {"end": "stream"},
    ]  # fmt: skip

    async def play() -> None:
        async with ScriptedGateway(script, lambda: worker.stop()) as gateway:
            worker = Worker(gateway.url, topic=TOPIC)
            worker.push(handle)
            await asyncio.wait_for(asyncio.gather(worker.serve(), gateway.play()), 20)

    asyncio.run(play())


def test_a_refused_extension_does_not_cancel_a_cleanup() -> None:
    deadline = 4000000000000
    expiring = {"event": "expiring", "data": {"wake": "w1", "deadline": deadline, "timeLeft": 5000}}
    refusal = {"status": 409, "body": {"reason": "ExtensionLimitReached", "message": "no", "deadline": deadline}}
    script: List[Dict[str, Any]] = [
        {"expect": f"GET /v1/topics/{TOPIC}/wakes"}, {"wake": {"wake": "w1", "deadline": deadline}}, {"begun": "w1"},
        expiring, {"expect": "POST /v1/wakes/w1/extend", "answer": refusal},
        {"expect": "POST /v1/wakes/w1", "body": {"result": "newData"}}, {"stop": True},
        {"expect": "POST /v1/streams/s1/drain"}, {"end": "stream"},
    ]  # fmt: skip

    async def play() -> None:
        async with ScriptedGateway(script, lambda: worker.stop()) as gateway:
            worker = Worker(gateway.url, topic=TOPIC)

            @worker.push
            async def handle(push: Push) -> Result:
                gateway.begun(push.id)
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(60)
                with contextlib.suppress(WakeGateError):
                    await push.extend(5)
                await asyncio.sleep(0.1)  # The cleanup.
                return Result.NEW_DATA

            await asyncio.wait_for(asyncio.gather(worker.serve(), gateway.play()), 20)

    asyncio.run(play())


@pytest.mark.parametrize("name, value", [
    ("completed", 0.5), ("completed", True), ("completed", -1), ("total", 2**53), ("total", None), ("total", "3"),
    ("title", 5), ("title", "x" * 257), ("subtitle", "ä" * 129),
])
def test_a_progress_refuses_values_that_the_gateway_would_refuse(name: str, value: Any) -> None:
    progress = Task.sample("com.example.app.export", "continued").progress
    progress.update(completed=2**53 - 1, title="x" * 256, subtitle=None)
    with pytest.raises(WakeGateError, match="set a whole number from 0|set None, or a text of at most") as caught:
        setattr(progress, name, value)
    assert caught.value.message.startswith(f"{name} is {value!r}"[:30])
    assert progress.completed == 2**53 - 1
    with pytest.raises(WakeGateError):
        progress.child(1, total=-1)


def test_a_handler_that_cannot_be_called_is_refused_when_it_is_registered() -> None:
    worker = Worker("https://127.0.0.1:1", topic=TOPIC)
    usual: Any = lambda task: None  # noqa: E731
    lonely: Any = lambda: None  # noqa: E731

    def remedy(register: Callable[[], object], code: str = "badArgument") -> str:
        with pytest.raises(WakeGateError) as caught:
            register()
        assert caught.value.code == code
        return caught.value.remedy

    for kind in ("app_refresh", "processing", "continued", "session"):
        decorator = getattr(worker, kind)
        assert remedy(lambda: decorator(usual)) == f'write @worker.{kind}("com.example.refresh")'
        assert remedy(lambda: decorator("a")(lonely)) == "write def handler(task)"
        decorator(f"com.example.{kind}")(usual)
    assert remedy(lambda: worker.push(lonely)) == "write def handler(push)"
    assert remedy(lambda: worker.conditions(usual)) == "write def handler(device, fields)"
    assert remedy(lambda: worker.processing("a b")).startswith("write 1 to 255 letters, digits, periods, hyphens")
    decorate: Any = worker.push
    assert remedy(lambda: decorate()) == "write @worker.push without parentheses"
    worker.push(usual)
    assert remedy(lambda: worker.push(usual), "duplicateTask") == "register one handler for each kind"
    again = worker.app_refresh("com.example.app_refresh")
    assert remedy(lambda: again(usual), "duplicateTask") == "register one handler for each identifier"


def test_a_topic_in_the_place_of_the_gateway() -> None:
    for topic in ("", TOPIC):
        with pytest.raises(WakeGateError) as caught:
            Worker("com.example.e", topic=topic)
        assert caught.value.remedy.startswith('write topic="com.example.e" to name a topic, or a URL')
    with pytest.raises(WakeGateError, match='topic="com.example.app"'):
        Worker()


def test_parts_of_a_progress_count_as_the_units_that_they_stand_for() -> None:
    progress = Task.sample("com.example.app.export", "continued").progress
    progress.total = 10
    read, written = progress.child(4, 8), progress.child(6, 3)
    read.completed, written.completed = 2, 1
    assert (progress.completed, progress.report()) == (0, {"completed": 3000, "total": 10_000})
    inner = written.child(1, 100)
    inner.add(50)
    assert progress.report() == {"completed": 4000, "total": 10_000}
    inner.add(50)
    read.add(6)
    assert (written.completed, progress.completed) == (2, 4)
    read.add()  # A part that has finished counts once.
    written.add()
    assert (progress.completed, progress.report()) == (10, {"completed": 10_000, "total": 10_000})


def test_a_handler_needs_no_gateway() -> None:
    push = Push.sample({"edition": 7}, topic="com.example.news")
    assert (push.payload["edition"], push.topic) == (7, "com.example.news")
    assert 29 < push.time_left <= 30
    task = Task.sample("com.example.app.export", "continued", resumedFrom={"completed": 2, "total": 4})
    assert task.resumed_from == (2, 4, None, None)
    task.progress.completed += 1
    assert task.progress.report() == {"completed": 1, "total": 0}
    with pytest.raises(WakeGateError, match="no gateway sent this wake"):
        asyncio.run(task.extend())
