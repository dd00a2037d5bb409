"""Asks with httpx for every line of standard input, which is METHOD URL, and prints METHOD URL STATUS LENGTH.

Arguments: the version of HTTP, 1 or 2, and the file of the certificate authority. A POST sends the two bytes {}. In
cleartext 2 is spoken with prior knowledge. The length is that of the content; `stream` for a stream of events, which is
not waited for.
"""

import ssl
import sys

import httpx

version, authority = sys.argv[1:3]
context = ssl.create_default_context(cafile=authority)
options = {"http1": version == "1", "http2": version == "2", "verify": context, "timeout": 20, "trust_env": False}
with httpx.Client(**options) as client:
    for line in sys.stdin:
        method, url = line.split()
        with client.stream(method, url, content=b"{}" if method == "POST" else None) as answer:
            is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
            length = "stream" if is_stream and method != "HEAD" else len(answer.read())
        print(method, url, answer.status_code, length)
