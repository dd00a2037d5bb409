"""A provider: pushes once to each device. Usage: provider.py TOPIC DEVICE... (needs httpx[http2], pyjwt[crypto])"""
import os, ssl, sys, time, uuid
import httpx

URL = os.environ.get("WAKEGATE_URL", "https://127.0.0.1:2197")
CA = os.environ.get("WAKEGATE_CA", ".wakegate/ca.pem")
PAYLOAD = {"aps": {"content-available": 1}, "hello": "world"}


class ProviderToken(httpx.Auth):
    """Creates provider tokens in the format of APNs: signed with ES256, valid for an hour, renewed after 50 minutes."""

    def __init__(self, key_file: str, key_id: str, team: str):
        self.key, self.key_id, self.team = open(key_file, encoding="ascii").read(), key_id, team
        self.token, self.made_at = "", 0

    def auth_flow(self, request: httpx.Request):
        if time.time() > self.made_at + 50 * 60:
            import jwt

            self.made_at = int(time.time())
            claims = {"iss": self.team, "iat": self.made_at}
            self.token = jwt.encode(claims, self.key, algorithm="ES256", headers={"kid": self.key_id})
        request.headers["authorization"] = f"bearer {self.token}"
        yield request


def push(client: httpx.Client, topic: str, device: str) -> httpx.Response:
    """Pushes until there is a final answer. With its apns-id, the push counts once, even if it is sent several
    times."""
    headers = {"apns-topic": topic, "apns-push-type": "background", "apns-priority": "5", "apns-id": str(uuid.uuid4())}
    for attempt in range(10):
        try:
            response = client.post(f"/3/device/{device}", headers=headers, json=PAYLOAD)
            if response.status_code not in (429, 503):
                return response
            delay = float(response.headers.get("retry-after", 2**attempt))
        except httpx.TransportError as error:
            print(f"no answer: {error!r}", file=sys.stderr)
            delay = min(2**attempt * 0.25, 15)
        time.sleep(delay)
    raise SystemExit(f"no answer for {device} after 10 attempts")


def main(topic: str, devices: list[str]) -> None:
    key_file = os.environ.get("WAKEGATE_PROVIDER_KEY")
    auth = ProviderToken(key_file, os.environ["WAKEGATE_KEY_ID"], os.environ["WAKEGATE_TEAM"]) if key_file else None
    with httpx.Client(base_url=URL, http2=True, verify=ssl.create_default_context(cafile=CA), auth=auth) as client:
        for device in devices:
            response = push(client, topic, device)
            reason = response.json()["reason"] if response.content else response.headers.get("wakegate-disposition")
            print(response.status_code, reason, response.headers["apns-id"], flush=True)


if len(sys.argv) < 3:
    sys.exit(__doc__)
main(sys.argv[1], sys.argv[2:])
