"""Asks once through httpx on a connection of its own, during a shutdown. Arguments: CA file, URL, body; then headers."""

import ssl
import sys

import httpx

ca, url, body, *headers = sys.argv[1:]
with httpx.Client(http1=False, http2=True, verify=ssl.create_default_context(cafile=ca), timeout=10) as client:
    fields = dict(header.split(": ", 1) for header in headers)
    response = client.post(url, content=body.encode(), headers=fields)
print(response.status_code, response.text)
