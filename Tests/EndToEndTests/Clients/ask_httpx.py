"""Asks through httpx, which speaks HTTP/2 only when ALPN selects it. The first argument says what:

    push URL CA TOPIC BODY     pushes over one connection, once with each provider token of standard input, one a line, and
                               without one for an empty line; prints the version, status, and reason or disposition of each
    once CA URL BODY HEADER... asks on a connection of its own; prints status and text
    routes VERSION CA          asks for every line of standard input, METHOD URL, over HTTP/1 or 2; in cleartext 2 is spoken
                               with prior knowledge. A POST sends the two bytes {}. Prints METHOD URL STATUS LENGTH; the
                               length of the content is `stream` for a stream of events, which is not waited for
"""

import ssl
import sys

import httpx


def client(authority, version="2"):
    context = ssl.create_default_context(cafile=authority)
    return httpx.Client(http1=version == "1", http2=version == "2", verify=context, timeout=60, trust_env=False)


def push(url, authority, topic, body):
    with client(authority) as connection:
        for line in sys.stdin.read().splitlines():
            headers = {"apns-topic": topic, "apns-push-type": "background", "apns-priority": "5"}
            headers |= {"authorization": line} if line else {}
            answer = connection.post(url, content=body.encode(), headers=headers)
            word = answer.json()["reason"] if answer.content else answer.headers["wakegate-disposition"]
            print(answer.http_version, answer.status_code, word)


def once(authority, url, body, *headers):
    fields = dict(header.split(": ", 1) for header in headers)
    with client(authority) as connection:
        answer = connection.post(url, content=body.encode(), headers=fields)
    print(answer.status_code, answer.text)


def routes(version, authority):
    with client(authority, version) as connection:
        for line in sys.stdin:
            method, url = line.split()
            with connection.stream(method, url, content=b"{}" if method == "POST" else None) as answer:
                is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
                length = "stream" if is_stream and method != "HEAD" else len(answer.read())
            print(method, url, answer.status_code, length)


globals()[sys.argv[1]](*sys.argv[2:])
