"""What the kernel alone takes to keep idle workers' connections alive: the same bytes at the same times as the gateway
sends and reads over cleartext, by a program that does nothing else. Of its CPU time only the kernel's part is told."""

import os
import resource
import select
import socket
import time

# A comment in a DATA frame, every 15 s on each connection; with every second one a PING, which is answered.
COMMENT_BYTES, PING_BYTES = 9 + 14, 9 + 8
COMMENT_SECONDS = 15
ROUNDS = 4
# What the program itself and its parent have open.
DESCRIPTORS_RESERVED = 160


def serve(peers: list[socket.socket]) -> None:
    """The workers: read all, and answer what is a comment with a PING."""
    poll = select.epoll()
    by_descriptor = {peer.fileno(): peer for peer in peers}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.EPOLLIN)
    while True:
        for descriptor, _ in poll.poll():
            received = by_descriptor[descriptor].recv(4096)
            if not received:
                os._exit(0)
            if len(received) > COMMENT_BYTES:
                by_descriptor[descriptor].send(bytes(PING_BYTES))


def connect(port: int, count: int) -> None:
    peers = []
    for _ in range(count):
        peer = socket.create_connection(("127.0.0.1", port))
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peers.append(peer)
    serve(peers)


def measure(connections: int) -> float:
    """The share of a core that the kernel takes for `connections`, or as many as there are descriptors for."""
    connections = min(connections, resource.getrlimit(resource.RLIMIT_NOFILE)[1] - DESCRIPTORS_RESERVED)
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        child = os.fork()
        if child == 0:
            connect(listener.getsockname()[1], connections)
        accepted = [listener.accept()[0] for _ in range(connections)]
    try:
        return keep_alive(accepted)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        for one in accepted:
            one.close()


def keep_alive(accepted: list[socket.socket]) -> float:
    poll = select.epoll()
    for one in accepted:
        one.setblocking(False)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(one.fileno(), select.EPOLLIN)
    by_descriptor = {one.fileno(): one for one in accepted}
    started = time.monotonic()
    spent = resource.getrusage(resource.RUSAGE_SELF).ru_stime
    for second in range(ROUNDS * COMMENT_SECONDS):
        message = bytes(COMMENT_BYTES + (PING_BYTES if second // COMMENT_SECONDS % 2 else 0))
        for one in accepted[second % COMMENT_SECONDS :: COMMENT_SECONDS]:
            one.send(message)
        while (left := started + second + 1 - time.monotonic()) > 0:
            for descriptor, _ in poll.poll(left):
                by_descriptor[descriptor].recv(4096)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_stime - spent) / (time.monotonic() - started)
