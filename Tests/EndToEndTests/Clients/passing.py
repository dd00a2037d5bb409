"""Code shared by the proxies of the tests: forwarding data."""


async def pass_on(reader, writer, swallows=lambda: False):
    """Passes on all that comes, and its end, unless it is to be swallowed; where that is no more possible, the other
    side is cut off."""
    try:
        while data := await reader.read(65536):
            if not swallows():
                writer.write(data)
                await writer.drain()
        if not swallows():
            writer.write_eof()
    except (ConnectionError, OSError):
        writer.transport.abort()
