"""Requests and their time limits."""

from __future__ import annotations

import asyncio

import pytest

from wakegate._gateway import limited


async def cancelled_with(awaited: asyncio.Future[int]) -> asyncio.Task[int]:
    task = asyncio.ensure_future(limited(awaited, 60))
    await asyncio.sleep(0)
    awaited.set_result(1)
    task.cancel()
    await asyncio.wait([task])
    return task


def test_cancellation_that_arrives_with_the_result() -> None:
    async def scene() -> None:
        assert (await cancelled_with(asyncio.get_running_loop().create_future())).cancelled()

    asyncio.run(scene())


def test_limit() -> None:
    async def scene() -> None:
        forever = asyncio.get_running_loop().create_future()
        with pytest.raises(asyncio.TimeoutError):
            await limited(forever, 0)
        assert forever.cancelled()
        assert await limited(asyncio.sleep(0, 1), None) == 1

    asyncio.run(scene())
