"""Many questions to the admin listener, one answer each, over one connection and without waiting in between."""

import asyncio
import json
from collections.abc import Iterable

# So many requests are under way at once. Their answers fit into the sockets' buffers, however long the gateway writes
# before anybody reads.
REQUESTS_AT_ONCE = 64


async def read_all(address: str, paths: Iterable[str]) -> list[tuple[int, dict]]:
    """The status and the JSON of each path, in their order.

    Throws OSError or asyncio.IncompleteReadError when the gateway ends meanwhile.
    """
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    answers: list[tuple[int, dict]] = []
    asked = list(paths)
    try:
        for start in range(0, len(asked), REQUESTS_AT_ONCE):
            some = asked[start : start + REQUESTS_AT_ONCE]
            # HTTP/1.1 and not HTTP/2, which costs Python ten times as much.
            writer.write(b"".join(f"GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n".encode() for path in some))
            await writer.drain()
            for _ in some:
                answers.append(await read_answer(reader))
    finally:
        writer.close()
    return answers


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    length = next(int(line.partition(":")[2]) for line in head if line.lower().startswith("content-length:"))
    return int(head[0].split()[1]), json.loads(await reader.readexactly(length))
