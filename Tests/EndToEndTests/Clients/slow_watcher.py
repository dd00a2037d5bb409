"""Watches a gateway over HTTP/2 with a window that lets nothing through, and says how its stream ended.

Arguments: HOST:PORT of the admin listener, and of the plain listener, where a crowd of workers with long names
subscribes first, so that events are large.
"""

import sys
import time

import h2.errors
import h2.events

from session import Session

WORKERS, TOPICS, SECONDS = 100, 50, 60

deadline = time.monotonic() + SECONDS
workers = Session(sys.argv[2])
waiting = {workers.request("GET", f"/v1/topics/{'t' * 240}.{number % TOPICS}/wakes?slots=1&name={'n' * 120}{number}")
           for number in range(WORKERS)}
workers.flush()
for event in workers.events():
    if isinstance(event, h2.events.ResponseReceived):
        waiting.discard(event.stream_id)
    if not waiting or time.monotonic() > deadline:
        break

watcher = Session(sys.argv[1], window=0)
stream = watcher.request("GET", "/v1/live")
watcher.flush()
for event in watcher.events():
    if isinstance(event, h2.events.StreamReset) and event.stream_id == stream:
        print(h2.errors.ErrorCodes(event.error_code).name)
        break
    if time.monotonic() > deadline:
        sys.exit(f"still open after {SECONDS} seconds")
