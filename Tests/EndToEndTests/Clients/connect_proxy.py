"""A proxy that makes tunnels, as `CONNECT` asks for, and shows who asked for which.

It listens on a free loopback port and prints it. For each tunnel it prints a line: the target, and what
`proxy-authorization` said, or `-`.
"""

import asyncio
import base64

from passing import pass_on


async def handle(reader, writer):
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split(" ")
    fields = {line.split(":")[0].lower(): line.split(":", 1)[1].strip() for line in head[1:] if ":" in line}
    shown = fields.get("proxy-authorization", "-")
    if shown.lower().startswith("basic "):
        shown = base64.b64decode(shown.split(" ")[1]).decode()
    print(method, target, shown, flush=True)
    if method != "CONNECT":
        writer.write(b"HTTP/1.1 405 Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        return writer.close()
    host, port = target.rsplit(":", 1)
    server_reader, server_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    await asyncio.gather(pass_on(reader, server_writer), pass_on(server_reader, writer))
    server_writer.close()
    writer.close()


async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
