"""Pushes once through httpx, which speaks HTTP/2 only when ALPN selects it. Arguments: URL, CA file, topic, body."""

import ssl
import sys

import httpx

url, ca, topic, body = sys.argv[1:]
with httpx.Client(http1=False, http2=True, verify=ssl.create_default_context(cafile=ca), timeout=10) as client:
    headers = {"apns-topic": topic, "apns-push-type": "background", "apns-priority": "5"}
    response = client.post(url, content=body.encode(), headers=headers)
print(response.http_version, response.status_code, response.headers["wakegate-disposition"])
