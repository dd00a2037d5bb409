"""The common part of the scripted agent and the scripted gateway: prepared answers, streams, and lines for the test."""

import http.server
import socketserver
import sys
import threading

answers = []
# The open streams of events: the file of each, and an event that ends it.
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


def obey(command, chosen):
    """Prepares an answer, or sends an event on the chosen streams, or ends them."""
    if command["do"] == "answer":
        return answers.append(command)
    for stream in chosen:
        file, ended = stream
        try:
            if command["do"] == "event":
                with writing:
                    file.write(f"event: {command['name']}\ndata: {command['data']}\n\n".encode())
                continue
        except OSError:
            # The reader has disconnected.
            pass
        streams.remove(stream)
        ended.set()


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

    def stream(self, beginning, headers, comment_seconds=None):
        """Answers with a stream of events, which lasts until it is ended; with a comment from time to time, if asked."""
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(beginning)
        self.close_connection = True
        ended = threading.Event()
        streams.append((self.wfile, ended))
        show(f"{self.command} {self.path} ")
        while not ended.wait(comment_seconds):
            with writing:
                self.wfile.write(b": alive\n\n")

    def body(self):
        return self.rfile.read(int(self.headers.get("content-length", 0))).decode()


class Quiet(socketserver.ThreadingMixIn):
    """The part of a server that takes no notice of clients that disconnect."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        pass
