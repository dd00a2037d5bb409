"""Pushes to a noisy topic as fast as the gateway lets it, and now and then to a quiet one on another connection.

Arguments: HOST:PORT, CA file, how many quiet pushes. Writes one JSON object: `noisy`, all answers to noisy pushes;
`overtaken`, for each quiet push how many noisy ones that were sent after it were answered before it; and `statuses`,
how often each status came.
"""

import collections
import json
import selectors
import sys

import h2.events

from session import Session, status_of

address, ca, quiet_count = sys.argv[1], sys.argv[2], int(sys.argv[3])
STREAMS = 900


class Provider(Session):
    def __init__(self, topic):
        super().__init__(address, ca)
        self.topic, self.waiting, self.sent = topic, set(), 0

    def push_next(self):
        self.sent += 1
        self.waiting.add(self.push(f"{self.sent % 1000:064x}" if self.topic == "noisy" else "5e" * 32, self.topic))

    def answers(self):
        """Reads what is there: the streams that were answered, with their statuses."""
        answered = {}
        while True:
            events = self.receive()
            assert events is not None, f"the gateway closed the connection of {self.topic}"
            heads = [event for event in events if isinstance(event, h2.events.ResponseReceived)]
            answered |= {event.stream_id: status_of(event) for event in heads}
            if not self.socket.pending():
                self.waiting -= answered.keys()
                return answered.items()


noisy, quiet = Provider("noisy"), Provider("quiet")
selector = selectors.DefaultSelector()
for connection in (noisy, quiet):
    selector.register(connection.socket, selectors.EVENT_READ, connection)
statuses = collections.Counter()
overtaken = []
answered_count = 0
# The number of the first noisy stream sent after the current quiet push, and the number of such streams with answers.
first_after, answered_after = None, 0
while len(overtaken) < quiet_count:
    while len(noisy.waiting) < STREAMS:
        noisy.push_next()
    noisy.flush()
    # The next quiet push waits until the noise has returned.
    if not quiet.waiting and answered_count >= STREAMS * (len(overtaken) + 1):
        first_after, answered_after = noisy.h2.get_next_available_stream_id(), 0
        quiet.push_next()
        quiet.flush()
    ready = selector.select(60)
    assert ready, "no push was answered in time"
    # Answers that are found in the same check count as simultaneous.
    for key, _ in sorted(ready, key=lambda each: each[0].data is noisy):
        for stream, status in key.data.answers():
            statuses[status] += 1
            if key.data is quiet:
                overtaken.append(answered_after)
                first_after = None
            else:
                answered_count += 1
                answered_after += first_after is not None and stream >= first_after
        key.data.flush()
print(json.dumps({"noisy": answered_count, "overtaken": overtaken, "statuses": statuses}))
