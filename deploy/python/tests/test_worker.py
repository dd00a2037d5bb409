"""Workers of a real gateway."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Dict, List, Optional, Tuple

import pytest

from wakegate import Push, Result, Task, TaskError, WakeGateError, Worker
from wakegate.pytest_plugin import DEVICE, WakeGate

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
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=block)
    assert process.stdout is not None
    try:
        pushed = wakegate.push()
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=10)[0] == "ended\n"
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
    assert remedy(lambda: worker.processing("a b")).startswith("write 1 to 255 letters, digits, full stops, hyphens")
    worker.push(usual)
    assert remedy(lambda: worker.push(usual), "duplicateTask") == "register one handler for each kind"
    again = worker.app_refresh("com.example.app_refresh")
    assert remedy(lambda: again(usual), "duplicateTask") == "register one handler for each identifier"


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
