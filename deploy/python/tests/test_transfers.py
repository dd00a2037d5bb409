"""The client of the transfer agent, with a separate agent and web server."""

from __future__ import annotations

import asyncio
import functools
import http.server
import subprocess
import threading
import time
from pathlib import Path
from typing import Iterator, Tuple

import pytest

from wakegate import BackgroundSession, TransferError
from wakegate.pytest_plugin import find_program

Places = Tuple[Path, str, str]


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    """A folder, the agent's socket, and the URL of a server that serves the folder."""
    socket, served = f"unix:{tmp_path}/agent.sock", tmp_path / "served"
    served.mkdir()
    (served / "film").write_bytes(b"x" * 300_000)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(served)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [find_program(), "transfers", "--state", str(tmp_path / "state"), "--listen", socket]
    agent = subprocess.Popen([*command, "--gateway", "https://127.0.0.1:1"], stdout=subprocess.DEVNULL)
    try:
        while not (tmp_path / "agent.sock").exists():
            assert agent.poll() is None, "the agent ended"
            time.sleep(0.02)
        yield tmp_path, socket, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        agent.terminate()
        agent.wait()
        server.shutdown()


def test_downloads_and_events(places: Places) -> None:
    folder, socket, url = places
    session = BackgroundSession("films", agent=socket, sendsLaunchEvents=False)

    async def transfer() -> None:
        got = await session.download(f"{url}/film", to=str(folder / "film"))
        assert (got["state"], got["bytes"], (folder / "film").stat().st_size) == ("finished", 300_000, 300_000)
        first = await session.add_download(f"{url}/film", note="again")
        second = await session.add_download(f"{url}/none")
        ends = {}
        async for name, data in session:
            if name in ("finished", "failed"):
                ends[data["transfer"]] = name
            if len(ends) == 2:
                break
        assert ends == {first: "finished", second: "failed"}
        assert [each["transfer"] for each in await session.finished_downloads()] == [first]
        with pytest.raises(TransferError, match="404") as caught:
            await session.wait(second)
        assert caught.value.code == "transferFailed"
        with pytest.raises(TransferError) as caught:
            await session.take(first, str(folder / "film"))
        assert caught.value.code == "fileExists" and caught.value.remedy
        await session.cancel(first)
        secret, third = url.replace("://", "://me:pa55@") + "/film", str(folder / "third")
        begun = await session.add_download(secret, note=third)
        assert (await session.download(secret, to=third))["transfer"] == begun

    asyncio.run(transfer())


def test_without_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKEGATE_TRANSFERS", f"unix:{tmp_path}/none")
    with pytest.raises(TransferError, match="no transfers agent answers at .*none.*WAKEGATE_TRANSFERS") as caught:
        asyncio.run(BackgroundSession("films").transfers())
    assert caught.value.code == "noAgent"
