import Foundation

/// A real HTTP/1.1 server on a free loopback port, in a process of its own.
///
/// `GET /stream` sends two pieces and ends, `GET /cut` ends in the middle of its body, `GET /silent` never answers,
/// `GET /large` sends 100,000 bytes, everything else echoes method, path, headers and body as JSON.
final class ScriptedServer {
    let port: Int
    private let process = Process()

    private static let script = """
        import http.server, json, socket, time
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *arguments): pass
            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.path == "/stream":
                    self.send_response(200); self.send_header("X-Mixed-Case", "yes"); self.end_headers()
                    self.wfile.write(b"data: a\\n\\n"); self.wfile.flush()
                    self.wfile.write(b"data: b\\n\\n"); self.close_connection = True
                    return
                if self.path == "/cut":
                    self.send_response(200); self.send_header("content-length", "10"); self.end_headers()
                    self.wfile.write(b"half"); self.close_connection = True
                    return
                if self.path == "/silent":
                    self.rfile.read(1); self.close_connection = True
                    return
                text = b"x" * 100000 if self.path == "/large" else json.dumps({
                    "method": self.command, "path": self.path, "body": body.decode("latin-1"),
                    "headers": {k.lower(): v for k, v in self.headers.items()}}).encode()
                self.send_response(418 if self.path == "/teapot" else 200)
                self.send_header("content-length", str(len(text))); self.end_headers()
                self.wfile.write(text)
            do_GET = do_POST = do_PATCH = do_DELETE = answer
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    init() throws {
        let output = Pipe()
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.process.arguments = ["python3", "-c", Self.script]
        self.process.standardOutput = output
        try self.process.run()
        var line = Data()
        while let byte = try output.fileHandleForReading.read(upToCount: 1), let first = byte.first, first != 0x0A {
            line.append(first)
        }
        self.port = Int(String(decoding: line, as: UTF8.self)) ?? 0
    }

    deinit {
        self.process.terminate()
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(self.port)\(path)" }
}
