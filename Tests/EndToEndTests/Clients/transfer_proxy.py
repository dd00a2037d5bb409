"""A proxy before a server that cuts, holds, corrupts and swallows what comes from it.

Arguments: the paths of the server's sockets, or HOST:PORT of each. It listens on a free loopback port for each and prints
the ports. Each line of standard input is a command, a JSON object, which is followed by a line `done`:

- `{"do": "hold", "after": N}`: every connection passes N bytes of the server's, then nothing; `release` lets all go on;
- `{"do": "cut", "after": N}`: the next connection is reset after N bytes of the server's;
- `{"do": "corrupt", "at": N}`: of the next connection the byte after N of the server's is another one;
- `{"do": "swallow"}`: whatever comes on the connections that are open now is swallowed, in both directions.
"""

import asyncio
import json
import socket
import struct
import sys

from passing import pass_on


class Rules:
    def __init__(self):
        self.hold = None
        self.released = asyncio.Event()
        self.faults = []
        self.open, self.swallowing = set(), set()

    def obey(self, command):
        if command["do"] == "hold":
            self.hold = command["after"]
            self.released = asyncio.Event()
        elif command["do"] == "release":
            self.hold = None
            self.released.set()
        elif command["do"] == "swallow":
            self.swallowing |= self.open
        else:
            self.faults.append(command)


def reset(writer):
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def pass_answers(reader, writer, rules, fault, swallows):
    """Passes what the server sends, with one fault at most, in pieces that end where something is to happen."""
    kind = fault["do"] if fault else None
    passed = 0
    while True:
        stops = [stop for stop in (rules.hold, fault.get("after") if fault else None) if stop is not None]
        room = min([stop - passed for stop in stops if stop >= passed] + [65536])
        if kind == "cut" and passed >= fault["after"]:
            return reset(writer)
        if rules.hold is not None and passed >= rules.hold:
            await rules.released.wait()
            continue
        data = bytearray(await reader.read(max(1, room)))
        if swallows():
            if not data:
                return None
            continue
        if not data:
            return writer.write_eof()
        if kind == "corrupt" and passed <= fault["at"] < passed + len(data):
            data[fault["at"] - passed] ^= 0xFF
        writer.write(data)
        await writer.drain()
        passed += len(data)


async def serve(target, rules):
    async def handle(reader, writer):
        fault = rules.faults.pop(0) if rules.faults else None
        host, _, port = target.rpartition(":")
        opened = asyncio.open_connection(host, int(port)) if host else asyncio.open_unix_connection(target)
        server_reader, server_writer = await opened
        rules.open.add(writer)

        def swallows():
            return writer in rules.swallowing

        upstream = asyncio.create_task(pass_on(reader, server_writer, swallows))
        try:
            await pass_answers(server_reader, writer, rules, fault, swallows)
        except (ConnectionError, OSError):
            writer.transport.abort()
        await upstream
        rules.open.discard(writer)
        server_writer.close()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    return server.sockets[0].getsockname()[1]


async def main(*targets):
    rules = Rules()
    ports = [await serve(target, rules) for target in targets]
    print(*ports, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        rules.obey(json.loads(line))
        print("done", flush=True)


asyncio.run(main(*sys.argv[1:]))
