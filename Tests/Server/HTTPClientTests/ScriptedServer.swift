import Glibc
import Testing
import WakeGateTestKit

/// A real HTTP/1.1 server on a free loopback port, in a process of its own.
///
/// `GET /stream` sends two pieces and ends, `GET /cut` ends in the middle of its body, `GET /silent` never answers,
/// `GET /large` sends 100,000 bytes, everything else echoes method, path, headers and body as JSON.
final class ScriptedServer {
    enum Handshake: String {
        /// The server knows nothing of TLS, and answers in HTTP/1.1.
        case plain
        /// The server ends each connection after its first bytes.
        case end
        /// The server resets each connection after its first bytes.
        case reset
    }

    let port: Int
    private let pid: Int32

    private static let script = """
        import http.server, json, os, socket, sys, time
        # Other tests wait for the ends of pipes and connections that were open when this one was started.
        os.closerange(3, 65536)
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def log_message(self, *arguments): pass
            def handle(self):
                if sys.argv[1] == "plain":
                    super().handle()
                elif sys.argv[1] == "end":
                    self.connection.recv(65536)
                else:
                    # What is closed with bytes that nobody has read is reset.
                    self.connection.recv(1)
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
        http.server.ThreadingHTTPServer.request_queue_size = 128
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    init(_ handshake: Handshake = .plain) throws {
        var ends: [Int32] = [-1, -1]
        let made = Children.alone {
            let made = unsafe pipe(&ends)
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            return made
        }
        try #require(made == 0)
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        // The test runner waits until nobody holds its output.
        unsafe posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        let words = ["python3", "-c", Self.script, handshake.rawValue]
        var arguments: [UnsafeMutablePointer<CChar>?] = unsafe words.map { unsafe strdup($0) } + [nil]
        defer { for index in unsafe arguments.indices { unsafe free(arguments[index]) } }
        var pid: Int32 = 0
        let code = Children.alone { unsafe posix_spawnp(&pid, "python3", &actions, nil, &arguments, environ) }
        self.pid = pid
        close(ends[1])
        defer { close(ends[0]) }
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while unsafe read(ends[0], &byte, 1) == 1, byte != 0x0A { line.append(byte) }
        try #require(code == 0)
        self.port = try #require(Int(String(decoding: line, as: UTF8.self)))
    }

    deinit {
        kill(self.pid, SIGKILL)
        var status: Int32 = 0
        _ = unsafe waitpid(self.pid, &status, 0)
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(self.port)\(path)" }
}
