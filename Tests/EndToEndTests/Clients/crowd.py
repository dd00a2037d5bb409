"""Asks on connections it has, while a crowd of others comes that says nothing.

Arguments: HOST:PORT of the plain listener, HOST:PORT of the admin listener, the size of the crowd, the bound that the
crowd meets. Writes `ready` and waits for a line; then lets the crowd come, waits until the bound was met, pushes 200
times, and writes one JSON object: `statuses`, how often each status came; `times`, how often the bound was met by then;
`operator`, the status that a new connection to the admin listener was answered, null when there was no answer within a
minute, or at another bound than connectionsMax within two seconds; and `after`, the status of a push on a new
connection when the crowd has left.
"""

import collections
import http.client
import json
import socket
import sys

plain, admin, size, bound = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
HEADERS = {"apns-topic": "com.example.crowd", "apns-push-type": "background", "apns-priority": "5"}


def push(connection, number):
    connection.request("POST", f"/3/device/{number % 10:064x}", '{"aps":{"content-available":1}}', HEADERS)
    response = connection.getresponse()
    response.read()
    return response.status


def stats(connection):
    connection.request("GET", "/v1/stats")
    return json.loads(connection.getresponse().read())


provider, watcher = (http.client.HTTPConnection(address, timeout=60) for address in (plain, admin))
assert push(provider, 0) == 200
stats(watcher)
print("ready", flush=True)
sys.stdin.readline()
host, port = plain.rsplit(":", 1)
crowd = [socket.create_connection((host, int(port)), timeout=60) for _ in range(size)]
while bound not in stats(watcher)["limits"]:
    pass
statuses = collections.Counter(push(provider, number) for number in range(200))
times = stats(watcher)["limits"][bound]
operator = http.client.HTTPConnection(admin, timeout=60 if bound == "connectionsMax" else 2)
try:
    operator.request("GET", "/healthz")
    operator_status = operator.getresponse().status
except TimeoutError:
    operator_status = None
operator.close()
for member in crowd:
    member.close()
later = http.client.HTTPConnection(plain, timeout=60)
print(json.dumps({"statuses": statuses, "times": times, "operator": operator_status, "after": push(later, 1)}))
