"""What the proxies of the tests share: passing on what comes."""


async def pass_on(reader, writer):
    """Passes on all that comes, and its end; where that is no more possible, the other side is cut off."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except (ConnectionError, OSError):
        writer.transport.abort()
