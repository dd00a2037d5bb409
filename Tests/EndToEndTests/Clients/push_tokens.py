"""Pushes over one connection, once with each provider token of standard input, one a line; without one for an empty line.

Arguments: URL, CA file, topic, body. Prints a line with status and reason for each.
"""

import ssl
import sys

import httpx

url, ca, topic, body = sys.argv[1:]
with httpx.Client(http1=False, http2=True, verify=ssl.create_default_context(cafile=ca), timeout=10) as client:
    for line in sys.stdin.read().splitlines():
        headers = {"apns-topic": topic, "apns-push-type": "background", "apns-priority": "5"}
        if line:
            headers["authorization"] = line
        response = client.post(url, content=body.encode(), headers=headers)
        print(response.status_code, response.json()["reason"] if response.content else "")
