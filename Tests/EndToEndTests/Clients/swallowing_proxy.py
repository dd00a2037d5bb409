"""A TCP proxy on a free loopback port, which it prints. At the end of its standard input every connection that is open
begins to swallow what comes, in both directions, and it prints a line; connections made afterwards pass it on."""

import asyncio
import sys

swallowing = set()
current = set()


async def pump(connection, reader, writer):
    while data := await reader.read(65536):
        if connection in swallowing:
            continue
        writer.write(data)
        await writer.drain()
    if connection not in swallowing:
        writer.close()


async def connected(reader, writer):
    host, port = sys.argv[1].rsplit(":", 1)
    onward_reader, onward_writer = await asyncio.open_connection(host, int(port))
    connection = object()
    current.add(connection)
    await asyncio.gather(
        pump(connection, reader, onward_writer), pump(connection, onward_reader, writer), return_exceptions=True
    )


async def main():
    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    swallowing.update(current)
    print("swallowing", flush=True)
    await server.serve_forever()


asyncio.run(main())
