import Foundation
import Glibc
import Testing

@Suite("The gateway as a service of systemd", .serialized, .timeLimit(.minutes(15)))
struct ServiceTests {
    /// The command line of a gateway that needs no certificate and stores nothing.
    private static let serve = [
        RunningGateway.program, "serve", "--edge", "off", "--plain", "127.0.0.1:0", "--admin", "127.0.0.1:0",
        "--set", "store=memory", "--set", "registration=open",
    ]

    /// Returns the members of the ready line.
    private func ready(_ service: ManagedService) throws -> [String: Any] {
        let line = try service.next("wrote: ").dropFirst("wrote: ".count)
        return try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }

    @Test("The manager learns that the service is ready and that it stops, and how long that may take")
    func notices() throws {
        let service = try ManagedService([], Self.serve + ["--set", "drainTimeout=20"])
        let told = try service.next("told: READY=1 ")
        let ready = try self.ready(service)
        let plain = try #require(ready["plain"] as? String)
        let admin = try #require(ready["admin"] as? String)
        #expect(told == "told: READY=1 STATUS=Takes pushes at \(plain), operators at \(admin)")
        let ended = try service.end()
        #expect(ended.output.contains("told: STOPPING=1 EXTEND_TIMEOUT_USEC=35000000 STATUS="))
        #expect(!ended.output.contains("WATCHDOG"), "the service has no watchdog")
        #expect(ended.status == 0)
    }

    @Test(
        "The manager learns of the begin of each reload, by its own clock, and of its end and outcome"
    )
    func reload() throws {
        let folder = try RestartFolder()
        let file = folder.folder.appendingPathComponent("wakegate.json5")
        func write(_ text: String) throws { try Data(text.utf8).write(to: file) }
        try write("{}")
        let service = try ManagedService([], Self.serve + ["--config", file.path])
        let begun = try service.next("told: READY=1 ")
        let ready = try self.ready(service)
        let admin = try #require(ready["admin"] as? String)
        func post() throws {
            _ = try ChildProcess.run("curl", ["--silent", "--noproxy", "*", "-X", "POST", "http://\(admin)/v1/reload"])
        }
        let refused = "; the configuration it has read again is faulty, and the old one stays in effect"
        let taken = "; has read its configuration again"
        for (text, outcome, ask) in [
            ("{ policy: { launchInterval: 60 } }", taken, { try service.write("hangup") }),
            ("{ policy: { launchInterval: -1 } }", refused, { try service.write("hangup") }),
            ("{ policy: { launchInterval: -1 } }", refused, post), ("{}", taken, post),
        ] {
            try write(text)
            let before = Self.monotonicMicroseconds
            try ask()
            // No other notification comes in between.
            let reloading = try service.next("told: ")
            let pattern = #/told: RELOADING=1 MONOTONIC_USEC=([0-9]+) STATUS=Reads its configuration again/#
            let moment = try #require(reloading.wholeMatch(of: pattern).flatMap { UInt64($0.1) }, "\(reloading)")
            #expect((before...Self.monotonicMicroseconds).contains(moment))
            #expect(try service.next("told: ") == begun + outcome)
        }
        #expect(try service.end().status == 0)
    }

    /// The time of CLOCK_MONOTONIC, which `MONOTONIC_USEC` uses.
    private static var monotonicMicroseconds: UInt64 {
        var now = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &now)
        return UInt64(now.tv_sec) * 1_000_000 + UInt64(now.tv_nsec) / 1000
    }

    @Test("A start that fails says why in the status")
    func failedStart() throws {
        let taken = try RunningGateway()
        let service = try ManagedService([], Self.serve + ["--plain", taken.plain])
        let told = try service.next("told: STATUS=")
        #expect(told.contains("Cannot start: \(taken.plain) is in use"))
        #expect(try service.finish().status == 1)
    }

    @Test(
        "The watchdog is fed while the engine and the loops run, and starves while one of them is stopped",
        arguments: ["engine", "loop-0"]
    )
    func watchdog(thread: String) throws {
        let service = try ManagedService(["--watchdog", "200000"], Self.serve)
        for _ in 0..<2 { _ = try service.next("told: WATCHDOG=1") }
        try service.expectStarvation(withStopped: thread)
        #expect(try service.end().status == 0)
    }

    @Test("The gateway has one loop for each processor that it may use")
    func loops() throws {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let ours = try #require(status.firstMatch(of: /Cpus_allowed_list:\s*(\d+)/)).1
        let gateway = try RunningGateway(under: ["taskset", "--cpu-list", String(ours)])
        let tasks = "/proc/\(gateway.process.identifier)/task"
        var names: [String] = []
        // A thread sets its name itself, possibly after the gateway is ready.
        try gateway.eventually("a loop") {
            names = try FileManager.default.contentsOfDirectory(atPath: tasks).map {
                try String(contentsOfFile: "\(tasks)/\($0)/comm", encoding: .utf8).trimmingCharacters(in: .newlines)
            }
            return names.contains("loop-0")
        }
        #expect(names.filter { $0.hasPrefix("loop-") } == ["loop-0"])
    }

    @Test("The gateway serves on passed sockets, reports their addresses, and opens no others for their listeners")
    func sockets() throws {
        let development = try RestartFolder()
        try development.putCertificates()
        let certificates = development.state.path
        let command = [
            RunningGateway.program, "serve", "--admin", "unix:/nowhere/else", "--set", "store=memory",
            "--set", "registration=open", "--set", "tls.certificate=\(certificates)/server.pem",
            "--set", "tls.key=\(certificates)/server.key",
        ]
        let sockets = ["edge=127.0.0.1:0", "admin=127.0.0.1:0", "admin=[::1]:0"].flatMap { ["--socket", $0] }
        let service = try ManagedService(sockets, command)
        let ready = try self.ready(service)
        let edge = try #require(ready["edge"] as? String)
        let admin = try #require(ready["admin"] as? [String])
        #expect(edge.hasPrefix("127.0.0.1:") && !edge.hasSuffix(":2197"))
        #expect(admin.count == 2 && admin[1].hasPrefix("[::1]:"))
        let push = ["push", String(repeating: "5c", count: 32), "--topic", "t", "--gateway", "https://\(edge)"]
        let pushed = try ChildProcess.wakegate(push + ["--ca", "\(certificates)/ca.pem"])
        #expect(pushed.output.hasPrefix("200 "), "\(pushed.errors)")
        for address in admin {
            let asked = try ChildProcess.run("curl", ["--silent", "--noproxy", "*", "http://\(address)/readyz"])
            #expect(asked.status == 0, "\(asked.errors)")
        }
        #expect(try service.end().status == 0)
    }

    @Test("systemd's own activation starts it with the first connection, which is answered")
    func socketActivate() throws {
        let folder = try RestartFolder()
        let paths = ["plain", "admin"].map { folder.folder.appendingPathComponent($0).path }
        // systemd-socket-activate passes on only the listed variables. Sanitizers need theirs.
        let options = ["ASAN_OPTIONS", "TSAN_OPTIONS"].filter { ProcessInfo.processInfo.environment[$0] != nil }
        let handedOn = options.map { "--setenv=\($0)" }
        let activation = ["--fdname=plain:admin"] + handedOn + paths.map { "--listen=\($0)" }
        // Started indirectly, because it closes the descriptor by which Foundation detects the end of a child.
        let service = try ManagedService([], ["systemd-socket-activate"] + activation + Self.serve)
        try #require(Polling.isSo { paths.allSatisfy { FileManager.default.fileExists(atPath: $0) } }, "no sockets")
        let url = "http://localhost/readyz"
        let answer = try ChildProcess.run("curl", ["--silent", "--max-time", "60", "--unix-socket", paths[1], url])
        #expect(answer.status == 0, "\(answer.errors) \(service.errors)")
        let ready = try self.ready(service)
        #expect(ready["plain"] as? String == "unix:\(paths[0])" && ready["admin"] as? String == "unix:\(paths[1])")
        #expect(try service.end().status == 0)
        #expect(paths.allSatisfy { FileManager.default.fileExists(atPath: $0) }, "they are the service manager's")
    }
}
