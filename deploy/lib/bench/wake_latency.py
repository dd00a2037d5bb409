"""The time from the 200 of a push to its wake on an idle worker's stream, as one client process sees the bytes."""

import argparse
import json
import re
import select
import socket
import ssl
import statistics
import time

import h2.config
import h2.connection
import h2.events
from bench import push_load
from bench.tables import Table
from shared import processes

TOPIC = "com.example.latency"
MEDIAN_TARGET_MS = 1.0
WAIT_SECONDS = 10
ROUND_SAMPLES = 25


class Peer:
    """One HTTP/2 connection over TLS. `receive` gives raw bytes, so that a clock can be read before they are parsed."""

    def __init__(self, address: str, ca: str):
        host, port = address.rsplit(":", 1)
        context = ssl.create_default_context(cafile=ca)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection((host, int(port)), timeout=WAIT_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname=host)
        self.authority = address
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        if waiting := self.h2.data_to_send():
            self.socket.sendall(waiting)

    def request(self, method: str, path: str, headers: list[tuple[str, str]], body: bytes | None) -> int:
        stream = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", self.authority), (":path", path), *headers]
        self.h2.send_headers(stream, head, end_stream=body is None)
        if body is not None:
            self.h2.send_data(stream, body, end_stream=True)
        self.flush()
        return stream

    def receive(self) -> bytes:
        received = self.socket.recv(65536)
        while self.socket.pending():
            received += self.socket.recv(65536)
        if not received:
            raise SystemExit("the gateway closed a connection")
        return received

    def parse(self, received: bytes) -> list[h2.events.Event]:
        events = self.h2.receive_data(received)
        for event in events:
            if isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        self.flush()
        return events


def status_of(events: list[h2.events.Event], stream: int) -> str | None:
    for event in events:
        if isinstance(event, h2.events.ResponseReceived) and event.stream_id == stream:
            return dict(event.headers)[":status"]
    return None


def wait_for_status(peer: Peer, stream: int, expected: str) -> list[h2.events.Event]:
    seen: list[h2.events.Event] = []
    while (status := status_of(seen, stream)) is None:
        seen += peer.parse(peer.receive())
    if status != expected:
        raise SystemExit(f"the gateway answered {status}, not {expected}")
    return seen


def wake_in(text: str) -> str | None:
    """The id of the first whole wake in the stream's text."""
    for event in text.split("\n\n")[:-1]:
        if "event: wake" in event and (found := re.search(r"^id: ?(\S+)$", event, re.MULTILINE)):
            return found.group(1)
    return None


class Sampler:
    def __init__(self, gateway: processes.Gateway):
        self.worker = Peer(gateway.edge, gateway.ca)
        self.provider = Peer(gateway.edge, gateway.ca)
        self.subscription = self.worker.request("GET", f"/v1/topics/{TOPIC}/wakes?slots=16&name=latency", [], None)
        wait_for_status(self.worker, self.subscription, "200")

    def close(self) -> None:
        self.provider.socket.close()
        self.worker.socket.close()

    def sample(self, number: int, body: bytes) -> tuple[float, float]:
        """Milliseconds to the arrival of the wake, from that of the 200 and from sending the push; a fresh device."""
        headers = [("apns-topic", TOPIC), ("apns-push-type", "background"), ("apns-priority", "5")]
        sent_at = time.monotonic()
        push = self.provider.request("POST", f"/3/device/{number:064x}", headers, body)
        accepted_at = woken_at = None
        arrived: list[tuple[Peer, float, bytes]] = []
        spoken: set[Peer] = set()
        text = ""
        wake = None
        while accepted_at is None or woken_at is None:
            # Bytes get their time before any are parsed: parsing in Python takes longer than what is measured.
            arrived += self.read_ready(number)
            spoken |= {peer for peer, _, _ in arrived}
            if len(spoken) < 2:
                continue
            for peer, moment, received in arrived:
                events = peer.parse(received)
                if peer is self.provider and (status := status_of(events, push)) is not None:
                    if status != "200":
                        raise SystemExit(f"a push was answered {status}")
                    accepted_at = moment
                for event in events:
                    if isinstance(event, h2.events.DataReceived) and event.stream_id == self.subscription:
                        text += event.data.decode()
                        wake = wake_in(text)
                        woken_at = moment if wake else None
            arrived = []
        answer = self.worker.request("POST", f"/v1/wakes/{wake}", [], json.dumps({"result": "newData"}).encode())
        wait_for_status(self.worker, answer, "204")
        return (woken_at - accepted_at) * 1000, (woken_at - sent_at) * 1000

    def read_ready(self, number: int) -> list[tuple[Peer, float, bytes]]:
        """What can be read now, each with the moment it was read; waits until there is something."""
        peers = {peer.socket: peer for peer in (self.provider, self.worker)}
        ready, _, _ = select.select(list(peers), [], [], WAIT_SECONDS)
        if not ready:
            raise SystemExit(f"sample {number}: no wake within {WAIT_SECONDS} s")
        return [(peers[each], time.monotonic(), peers[each].receive()) for each in ready]


def measure(options: argparse.Namespace, folder: str) -> list[Table]:
    samples = options.samples
    pairs: list[tuple[float, float]] = []
    with processes.Gateway(options.products, folder, [], []) as gateway:
        body = push_load.payload()
        # Connections stay on the loop that took them; new ones in each round cover same loops and different ones.
        for start in range(0, samples, ROUND_SAMPLES):
            sampler = Sampler(gateway)
            sampler.sample(2 * samples + start, body)
            pairs += [sampler.sample(number, body) for number in range(start, min(samples, start + ROUND_SAMPLES))]
            sampler.close()
    values = sorted(pair[0] for pair in pairs)
    median, sent = (statistics.median(pair[index] for pair in pairs) for index in (0, 1))
    figures = [median, *(values[samples * hundredths // 100] for hundredths in (10, 90, 99))]
    cells = [f"{samples} samples", *(f"{value:.3f}" for value in figures)]
    table = Table("From the 200 of a push to its wake, ms", ["", "median", "p10", "p90", "p99"], [cells])
    table.notes = [
        f"target: a median under {MEDIAN_TARGET_MS:g}  {table.target(median < MEDIAN_TARGET_MS)}",
        f"below 0 the wake came first; from sending the push to the wake: {sent:.3f}",
    ]
    return [table]
