"""Downloads a file with the transfers agent; run again, it goes on with it. Usage: transfers.py SESSION URL PATH"""
import contextlib, http.client, json, os, socket, sys, time

AGENT = os.environ.get("WAKEGATE_TRANSFERS") or f"{os.environ.get('XDG_RUNTIME_DIR')}/wakegate/transfers.sock"


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(45)  # A comment comes every 15 s: silence means that the stream is broken.
        self.sock.connect(AGENT.removeprefix("unix:"))


def ask(method, path, body=None):
    """The agent's answer; what it refuses ends the program."""
    with contextlib.closing(Connection("localhost")) as connection:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        answer = json.loads(response.read() or "{}")
    if response.status >= 300:
        sys.exit(f"{response.status} {answer.get('reason')}: {answer.get('message')}")
    return answer


def events(session):
    """What happens in the session, up to the end of the stream; the first event is `state`."""
    with contextlib.closing(Connection("localhost")) as connection:
        name = connection.request("GET", f"{session}/events")
        for line in connection.getresponse():  # Bytes are divided at line feeds alone.
            field, _, value = line.decode().rstrip("\n").partition(": ")
            name = value if field == "event" else name
            if field == "data":
                yield name, json.loads(value)


def end(session, transfer):
    """Waits until the transfer has ended, whatever becomes of the agent meanwhile."""
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            for name, data in events(session):
                if name == "progress" and data["transfer"] == transfer:
                    print(f"{data['bytes']} of {data['total']} bytes", file=sys.stderr)
                elif name == "state" or data.get("transfer") == transfer:
                    found = ask("GET", f"{session}/transfers/{transfer}")  # It may have ended before the stream began.
                    if found["state"] in ("finished", "failed", "cancelled"):
                        return found
        time.sleep(0.5)  # The agent starts anew; it has forgotten nothing.


session, url, path = f"/v1/sessions/{sys.argv[1]}", sys.argv[2], os.path.abspath(sys.argv[3])
ask("PUT", session, {})
listed = ask("GET", f"{session}/transfers")["transfers"]
mine = [each for each in listed if (each["url"], each["note"], each["taken"]) == (url, path, False)]
going = [each["transfer"] for each in mine if each["state"] in ("waiting", "running", "finished")]
new = {"kind": "download", "url": url, "note": path}
transfer = going[0] if going else ask("POST", f"{session}/transfers", new)["transfer"]
ended = end(session, transfer)
ended["state"] == "finished" or sys.exit(f"{ended['state']}: {(ended['error'] or {}).get('message')}")
print(path, ask("POST", f"{session}/transfers/{transfer}/take", {"to": path})["bytes"])
