"""Pushes on one connection and writes what came back, frame by frame, as one JSON list of texts.

Arguments: HOST:PORT, CA file, and a JSON object:
  topic    of every push
  batches  lists of device tokens: the pushes of one are sent together, when those of the one before have ended
  open     how many pushes are left without an end at last; 0 without it
  until    the text that must come last; any without it
  proof    the value of authorization, or a list with a value for each batch; none without it
A text is `settings N`, `STATUS STREAM REASON`, `reset STREAM CODE`, `goaway CODE LAST DATA` or `end`.
"""

import json
import sys

import h2.errors
import h2.events
import h2.settings

from session import Session, status_of

address, ca, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
STREAMS = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS


class Provider(Session):
    def __init__(self):
        super().__init__(address, ca)
        self.texts, self.statuses, self.bodies, self.open_streams, self.pongs = [], {}, {}, set(), 0
        self.is_ended = False

    def read(self):
        """Processes the next events; at the end of the connection every open stream has ended, too."""
        events = self.receive()
        self.is_ended = events is None
        if self.is_ended:
            return self.texts.append("end")
        for event in events:
            self.take(event)
        self.try_to_flush()

    def try_to_flush(self):
        try:
            self.flush()
        except OSError:
            pass

    def take(self, event):
        match event:
            case h2.events.RemoteSettingsChanged() if STREAMS in event.changed_settings:
                self.texts.append(f"settings {event.changed_settings[STREAMS].new_value}")
            case h2.events.ResponseReceived():
                self.statuses[event.stream_id] = status_of(event)
            case h2.events.DataReceived():
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self.bodies[event.stream_id] = json.loads(event.data)
            case h2.events.StreamEnded():
                reason = self.bodies.get(event.stream_id, {}).get("reason")
                words = [self.statuses[event.stream_id], str(event.stream_id)] + ([reason] if reason else [])
                self.texts.append(" ".join(words))
                self.open_streams.discard(event.stream_id)
            case h2.events.StreamReset() if event.stream_id in self.open_streams:
                self.texts.append(f"reset {event.stream_id} {h2.errors.ErrorCodes(event.error_code).name}")
                self.open_streams.discard(event.stream_id)
            case h2.events.ConnectionTerminated():
                code = h2.errors.ErrorCodes(event.error_code).name
                data = (event.additional_data or b"").decode()
                self.texts.append(f"goaway {code} {event.last_stream_id} {data}")
                # Streams above the last one are not handled.
                self.open_streams = {stream for stream in self.open_streams if stream <= event.last_stream_id}
            case h2.events.PingAckReceived():
                self.pongs += 1

    def settle(self, still_open):
        """Waits until all but so many pushes have ended, and for whatever was sent before that."""
        while not self.is_ended and len(self.open_streams) > still_open:
            self.read()
        if not self.is_ended:
            wanted = self.pongs + 1
            self.h2.ping(b"12345678")
            self.try_to_flush()
            while not self.is_ended and self.pongs < wanted:
                self.read()


provider = Provider().go_on_after_goaway()
provider.settle(0)
for index, batch in enumerate(settings["batches"]):
    if provider.is_ended:
        break
    proof = settings.get("proof")
    proof = proof[index] if isinstance(proof, list) else proof
    fields = [("authorization", proof)] if proof else []
    provider.open_streams |= {provider.push(device, settings["topic"], *fields) for device in batch}
    provider.flush()
    provider.settle(settings.get("open", 0) if index + 1 == len(settings["batches"]) else 0)
while "until" in settings and not provider.is_ended and settings["until"] != provider.texts[-1]:
    provider.read()
print(json.dumps(provider.texts))
