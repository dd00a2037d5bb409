"""Downloads a file with the transfer agent, or continues the download. Usage: transfers.py SESSION URL PATH

It uses the library in deploy/python.
"""
import asyncio, sys
from wakegate import BackgroundSession, TransferError


async def show(session: BackgroundSession) -> None:
    async for name, data in session.events():
        if name == "progress":
            print(f"{data['bytes']} of {data['total']} bytes", file=sys.stderr)


async def main(name: str, url: str, path: str) -> None:
    session = BackgroundSession(name)
    showing = asyncio.create_task(show(session))
    taken = await session.download(url, to=path)  # It continues even if the agent restarts.
    showing.cancel()
    print(path, taken["bytes"])


if len(sys.argv) != 4:
    sys.exit(__doc__)
try:
    asyncio.run(main(*sys.argv[1:4]))
except TransferError as error:
    sys.exit(f"{error.reason or error.code}: {error.message}")
