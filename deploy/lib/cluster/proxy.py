"""A proxy between gateways and database servers that cuts, holds and delays connections.

Runs in a separate process: python -m cluster.proxy '{"gateways": 3, "ports": [5432, ...]}'. Its first output line is a
JSON list of ports for each gateway, one port for each server. It then answers each command, a line of JSON, with a
line: `{"do": "cut", "gateway": 1}` resets the gateway's connections, `{"do": "hold", "gateway": 1, "on": true}` holds
all data back (it passes later), and `{"do": "slow", "seconds": 1}` delays each answer to a commit. It ends at the end
of its input.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys

from shared import processes

READ_BYTES = 65536
# The name of the statement that ends a transaction of a gateway (Sources/Cluster/PostgresStore/Store/CommitStatement.swift).
COMMIT = b"wakegate_commit"


class Side:
    """The state of the connections of one gateway."""

    def __init__(self) -> None:
        self.passes = asyncio.Event()
        self.passes.set()
        self.writers: set[asyncio.StreamWriter] = set()


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy: "Proxy", side: Side):
        self.proxy, self.side, self.commits = proxy, side, 0

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_answer: bool) -> None:
        while piece := await reader.read(READ_BYTES):
            if is_answer:
                commits, self.commits = self.commits, 0
                await asyncio.sleep(self.proxy.seconds if commits else 0)
            else:
                self.commits += piece.count(COMMIT)
            await self.side.passes.wait()
            writer.write(piece)
            await writer.drain()


class Proxy:
    def __init__(self) -> None:
        self.seconds = 0.0
        self.sides: list[Side] = []

    async def listen(self, gateways: int, ports: list[int]) -> list[list[int]]:
        listening = []
        for _ in range(gateways):
            side = Side()
            self.sides.append(side)
            servers = [
                await asyncio.start_server(
                    lambda reader, writer, side=side, port=port: self.accept(side, port, reader, writer), "127.0.0.1", 0
                )
                for port in ports
            ]
            listening.append([server.sockets[0].getsockname()[1] for server in servers])
        return listening

    async def accept(
        self, side: Side, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            # Behave as if nothing listens there: reset the connection instead of closing it.
            writer.transport.abort()
            return
        link = Link(self, side)
        both = (writer, far_writer)
        side.writers.update(both)
        directions = (reader, far_writer, False), (far_reader, writer, True)
        pumps = [asyncio.create_task(link.pass_on(*direction)) for direction in directions]
        with contextlib.suppress(OSError):
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        side.writers.difference_update(both)
        for each in both:
            each.close()

    def obey(self, command: dict) -> None:
        match command["do"]:
            case "cut":
                for writer in list(self.sides[command["gateway"]].writers):
                    writer.transport.abort()
            case "hold":
                passes = self.sides[command["gateway"]].passes
                passes.clear() if command["on"] else passes.set()
            case "slow":
                self.seconds = command["seconds"]

    async def run(self, gateways: int, ports: list[int]) -> None:
        def tell(answer: object) -> None:
            print(json.dumps(answer), flush=True)

        tell(await self.listen(gateways, ports))
        while line := await asyncio.to_thread(sys.stdin.readline):
            self.obey(json.loads(line))
            tell("done")


class ProxyProcess(processes.Program):
    """The proxy's process, as seen by the test that controls it."""

    standard_input = subprocess.PIPE

    def __init__(self, folder: str, gateways: int, ports: list[int]):
        command = [sys.executable, "-m", "cluster.proxy", json.dumps({"gateways": gateways, "ports": ports})]
        super().__init__(command, os.path.join(folder, "proxy.log"))
        self.start()
        self.ports: list[list[int]] = self.ready

    def tell(self, **command: object) -> None:
        """Sends a command and returns once it is done."""
        self.ask(json.dumps(command).encode() + b"\n")


if __name__ == "__main__":
    asyncio.run(Proxy().run(**json.loads(sys.argv[1])))
