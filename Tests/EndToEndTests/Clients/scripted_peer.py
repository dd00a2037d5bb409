"""The common part of the scripted agent and the scripted gateway: prepared answers, and lines for the test."""

import http.server
import sys
import threading

answers = []
streams = []
writing = threading.Lock()


def show(line):
    with writing:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def take_answer(method, path, default):
    """Returns the prepared answer to a request, else `default`. An answer without `lasts` is used once."""
    fitting = [answer for answer in answers if answer["method"] == method and path.endswith(answer["end"])]
    for answer in fitting:
        if not answer.get("lasts"):
            answers.remove(answer)
            return answer
    return fitting[-1] if fitting else default


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def reply(self, answer):
        content = answer.get("body", "").encode()
        self.send_response(answer["status"])
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        if answer["status"] != 204:
            self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def body(self):
        return self.rfile.read(int(self.headers.get("content-length", 0))).decode()
