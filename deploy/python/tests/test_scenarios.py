"""Plays the scenarios that all SDKs share."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from wakegate import Push, Release, Result, Task, TaskError, WakeGateError, Worker
from wakegate.wakes import Wake

from scripted import STEP_SECONDS, TOPIC, ScriptedGateway

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.json"))


Begin = Callable[[str], None]


def handler(actions: List[Dict[str, Any]], handled: List[Dict[str, Any]], begin: Begin) -> Callable[[Any], Any]:
    """Returns a handler that performs the actions, and records its input."""

    async def handle(wake: Wake) -> Any:
        noted: Dict[str, Any] = {"wake": wake.id, "kind": wake.kind, "attempt": wake.attempt, "errors": []}
        if isinstance(wake, Push):
            noted["payload"] = wake.payload
        if isinstance(wake, Task):
            noted["resumedFrom"] = wake.resumed_from._asdict() if wake.resumed_from else None
        on_cancel: Any = None
        begin(wake.id)
        try:
            for action in actions:
                (name, value), = action.items()
                if name == "onCancel":
                    on_cancel = value
                elif name == "return":
                    noted["end"] = "returned"
                    return Result(value) if isinstance(value, str) else value
                else:
                    await act(wake, name, value, noted["errors"])
        except asyncio.CancelledError:
            noted["end"] = "cancelled" if on_cancel is None else "returned"
            if on_cancel is None:
                raise
            return Result(on_cancel) if isinstance(on_cancel, str) else on_cancel
        except Exception:
            noted["end"] = "raised"
            raise
        finally:
            noted["reason"] = wake.expiration_reason
            handled.append(noted)

    return handle


async def act(wake: Wake, name: str, value: Any, errors: List[str]) -> None:
    if name == "wait":
        await asyncio.sleep(60 if value == "cancelled" else value)
    elif name == "raise":
        raise ValueError(value)
    elif name == "release":
        raise Release(value)
    elif name == "progress":
        assert isinstance(wake, Task)
        wake.progress.update(**value)
    else:
        try:
            if name == "extend":
                await wake.extend(value)
            elif name == "submit":
                await wake.scheduler.submit(**value)
            else:
                raise AssertionError(f"no action {name}")
        except (TaskError, WakeGateError) as error:
            errors.append(error.code)


def make_worker(url: str, scenario: Dict[str, Any], handled: List[Dict[str, Any]], begin: Begin) -> Worker:
    settings = scenario["worker"]
    worker = Worker(url, topic=TOPIC, token=settings.get("token"), slots=settings.get("slots", 16), stop_limit=5)
    if "push" in settings:
        worker.push(handler(settings["push"], handled, begin))
    for name, actions in settings.get("tasks", {}).items():
        worker.processing(name)(handler(actions, handled, begin))
    quick = {"firstWait": [0.05, 0.1], "backoff": [0.05, 0.1], "resultBackoff": [0.05, 0.1]}
    names = {"firstWait": "first_wait", "resultBackoff": "result_backoff"}
    for name, value in {**quick, **settings.get("timing", {})}.items():
        setattr(worker._timing, names.get(name, name), value)
    return worker


async def play(scenario: Dict[str, Any]) -> None:
    handled: List[Dict[str, Any]] = []
    async with ScriptedGateway(scenario["script"], lambda: worker.stop()) as gateway:
        worker = make_worker(gateway.url, scenario, handled, gateway.begun)
        running = asyncio.ensure_future(worker.serve())
        playing = asyncio.ensure_future(gateway.play())
        await asyncio.wait({running, playing}, return_when=asyncio.FIRST_COMPLETED)
        if running.done() and not running.exception() and not playing.done():
            await asyncio.wait({playing}, timeout=STEP_SECONDS)
        if playing.done() and playing.exception():
            worker.cancel_handlers()
            await asyncio.wait({running}, timeout=STEP_SECONDS)
        elif not running.done():
            await asyncio.wait({running}, timeout=STEP_SECONDS)
        playing.cancel() if not playing.done() else playing.result()
        assert running.done(), "the worker did not end"
        error = running.exception()
        assert getattr(error, "code", error) == scenario.get("error"), error
        assert playing.done() and not playing.cancelled(), "the worker ended before the script"
        gateway.check_nothing_left()
    assert len(handled) == len(scenario["handled"]), handled
    for noted, expected in zip(handled, scenario["handled"]):
        assert {name: noted.get(name) for name in expected} == expected


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_scenario(file: Path) -> None:
    asyncio.run(play(json.loads(file.read_text(encoding="utf-8"))))


def test_the_scripted_gateway_is_a_program_for_other_languages() -> None:
    file = next(each for each in FILES if each.stem == "drain")
    scenario = json.loads(file.read_text(encoding="utf-8"))
    command = [sys.executable, str(Path(__file__).with_name("scripted.py")), str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdin is not None and gateway.stdout is not None
        notes = gateway.stdin
        url = json.loads(gateway.stdout.readline())["url"]
        worker = make_worker(url, scenario, [], lambda wake: print(wake, file=notes, flush=True))
        running = threading.Thread(target=lambda: asyncio.run(worker.serve()))
        running.start()
        assert json.loads(gateway.stdout.readline()) == {"stop": True}
        worker.stop()
        running.join(STEP_SECONDS)
        gateway.stdin.close()
        assert json.loads(gateway.stdout.readline()) == {"fault": None}


def test_every_scenario_says_its_rule() -> None:
    assert len(FILES) >= 30
    for file in FILES:
        assert json.loads(file.read_text(encoding="utf-8"))["rule"].endswith("."), file
