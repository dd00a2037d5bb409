import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("Destinations of the log", .serialized, .timeLimit(.minutes(15)))
struct LogOutputTests {
    private let topic = "com.example.log"
    private let token = String(repeating: "10910910", count: 8)

    enum Reader: String, CaseIterable {
        /// Standard error is a full pipe without a reader.
        case stuck
        /// Standard error is a pipe whose reader has closed it.
        case gone
        /// Standard error is a file on a full disk.
        case fullDisk
    }

    @Test("A stuck, closed or full standard error delays neither pushes nor reloads nor the end")
    func reader() throws {
        for reader in Reader.allCases {
            let launcher =
                switch reader {
                case .stuck: ["python3", RunningGateway.client("full_pipe.py")]
                case .gone: ["bash", "-c", #"exec "$@" 2> >(exit 0)"#, "bash"]
                case .fullDisk: ["bash", "-c", #"exec "$@" 2>/dev/full"#, "bash"]
                }
            let gateway = try RunningGateway(["--set", "log.level=debug"], under: launcher)
            for index in 1...400 { try self.failHandshake(gateway, index) }
            #expect(try gateway.push(self.token, topic: self.topic).status == 200)
            for _ in 1...20 { #expect(try gateway.admin("/v1/reload", "-X", "POST").status == 200) }
            #expect(try gateway.push(self.token, topic: self.topic).status == 200)
            #expect(try gateway.stats().integer("pushes", "accepted") == 2)
            #expect(try gateway.process.end().status == 0, "\(reader)")
        }
    }

    /// Causes a log line.
    private func failHandshake(_ gateway: RunningGateway, _ index: Int) throws {
        let port = try #require(gateway.edge.split(separator: ":").last.flatMap { UInt16($0) })
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let isConnected = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        try #require(isConnected)
        let nonsense = Array("GET / HTTP/1.1\r\n\r\n forged \(index)".utf8)
        _ = unsafe send(descriptor, nonsense, nonsense.count, Int32(MSG_NOSIGNAL))
        var answer = [UInt8](repeating: 0, count: 100)
        while unsafe recv(descriptor, &answer, answer.count, 0) > 0 {}
    }

    @Test("The first failed handshakes are logged at debug level, and the rest are counted")
    func handshakes() throws {
        let gateway = try RunningGateway(["--set", "log.level=debug"])
        for index in 1...40 { try self.failHandshake(gateway, index) }
        try gateway.eventually("the line about the others") { gateway.process.errors.contains("suppressed=35") }
        let lines = gateway.process.errors.split(separator: "\n").filter { $0.contains(" debug handshakeFailed ") }
        #expect(lines.count == 6)
        #expect(lines.allSatisfy { $0.contains(#"cause="http request""#) }, "\(lines)")
        #expect(!gateway.process.errors.contains("forged"))
    }

    @Test("If standard error is the journal, entries are sent there with separate fields")
    func journal() throws {
        let folder = try TemporaryFolder()
        let free = ["--edge", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--state", "\(folder.path)/s"]
        let process = try ChildProcess(
            "unshare",
            ["--mount", "python3", RunningGateway.client("journal.py"), RunningGateway.program, "dev"] + free,
            folder: folder.url
        )
        var entries: [[String: String]] = []
        while let line = try process.line(), entries.last?["WAKEGATE_EVENT"] != "stopped" {
            guard let entry = try? JSONDecoder().decode([String: String].self, from: Data(line.utf8)) else { continue }
            entries.append(entry)
            guard entry["WAKEGATE_EVENT"] == "ready" else { continue }
            let file = folder.url.appendingPathComponent("s/gateway.json")
            let gateway = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
            kill(try #require(gateway?["pid"] as? Int32), SIGTERM)
        }
        #expect(entries.map { $0["WAKEGATE_EVENT"] } == ["ready", "draining", "stopped"])
        let ready = try #require(entries.first)
        #expect(ready["PRIORITY"] == "6" && ready["SYSLOG_IDENTIFIER"] == "wakegate")
        #expect(ready["MESSAGE"]?.hasPrefix("ready admin=127.0.0.1:") == true)
        #expect(ready["WAKEGATE_EDGE"]?.hasPrefix("127.0.0.1:") == true)
        #expect(try process.finish().status == 0)
        // The human-readable form is not also written to the journal's stream.
        #expect(!process.errors.contains(" info ready "))
    }
}

@Suite("Commands with an unusable standard output", .timeLimit(.minutes(15)))
struct LostOutputTests {
    private let topic = "com.example.lost"
    private let token = String(repeating: "10570570", count: 8)

    private func run(_ redirection: String, _ gateway: RunningGateway, _ words: [String]) throws -> ChildProcess.Ended {
        let script = #"exec "$@" "# + redirection
        let arguments = ["-c", script, "bash", RunningGateway.program] + words
        return try ChildProcess.run("bash", arguments, folder: gateway.folder)
    }

    @Test("A command reports lost output and ends with 1, unless its reader has closed the pipe early")
    func lost() throws {
        let gateway = try RunningGateway()
        let state = gateway.folder.appendingPathComponent(".wakegate").path
        let commands: [[String]] = [
            ["token", "issue", "--role", "operator", "--state", state],
            ["device", "register", "--topic", self.topic],
            ["push", self.token, "--topic", self.topic],
            ["--help"],
        ]
        for redirection in [">/dev/full", ">&-"] {
            for command in commands {
                let ended = try self.run(redirection, gateway, command)
                #expect(ended.status == 1, "\(command)")
                #expect(ended.errors.contains("the output is lost: standard output takes nothing"), "\(ended.errors)")
            }
        }
        #expect(try gateway.stats().integer("pushes", "accepted") == 2)
        let gone = try self.run("> >(exit 0)", gateway, ["push", self.token, "--topic", self.topic])
        #expect(gone.status == 0 && !gone.errors.contains("lost"), "\(gone.errors)")
    }
}
