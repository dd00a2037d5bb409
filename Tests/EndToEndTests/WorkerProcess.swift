import Foundation
import Glibc

/// A `wakegate worker` that runs a bash script for each wake, with helpers for tests.
final class WorkerProcess {
    /// A script that prints its process group, starts a child that ignores SIGTERM, and waits for both indefinitely.
    static let stubborn = """
        trap '' TERM; (trap '' TERM; exec tail -f /dev/null) & echo $$; echo started >&2; wait; wait
        """

    let process: ChildProcess

    /// Starts a worker and waits until it has subscribed.
    ///
    /// - Parameters:
    ///   - options: the options of `wakegate worker`.
    ///   - script: a script for bash, which runs in the gateway's directory.
    ///   - command: the command with its arguments, instead of a script.
    ///   - launcher: a command and its first arguments, which runs the program given by the remaining arguments.
    init(
        _ gateway: RunningGateway,
        topic: String,
        _ options: [String] = [],
        script: String = "",
        command: [String]? = nil,
        under launcher: [String] = []
    ) throws {
        let worker = [RunningGateway.program, "worker", "--topic", topic] + options + ["--"]
        let command = launcher + worker + (command ?? ["bash", "-c", script])
        let before = try gateway.workerCount()
        self.process = try ChildProcess(command[0], Array(command.dropFirst()), folder: gateway.folder)
        try gateway.eventually("a worker; its errors: \(self.process.errors)") {
            try gateway.workerCount() == before + 1
        }
    }

    /// Returns the next line that a command wrote, without the wake's identifier.
    func line(within seconds: Double = 60) throws -> String? {
        try self.process.line(within: seconds).map { String($0.dropFirst(33)) }
    }

    /// Waits until standard error contains a text.
    func says(_ text: String) throws { try self.process.says(text) }

    /// Returns true if the group contains a running process.
    static func isGroupThere(_ group: Int32) -> Bool {
        // Zombies are harmless and are not counted.
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.contains { name in
            guard Int32(name) != nil, let stat = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
                let end = stat.lastIndex(of: ")")
            else { return false }
            // The fields after the name are the state, the parent and the group.
            let fields = stat[stat.index(after: end)...].split(separator: " ")
            return fields.count > 2 && fields[0] != "Z" && Int32(fields[2]) == group
        }
    }
}

/// A worker of the SDK in its own process, which follows the instructions in its pushes.
final class SDKWorker {
    struct Event {
        let name: String
        let values: [String: Any]

        func text(_ name: String) -> String? { self.values[name] as? String }
    }

    static let topic = "com.example.sdk"
    static let program = RunningGateway.products.appendingPathComponent("wakegate-workers").path

    let process: ChildProcess
    /// The printed events that no test has waited for yet.
    private var unclaimed: [Event] = []

    /// - Parameters:
    ///   - url: the URL of its gateway.
    ///   - authority: the path of the authority that it trusts; nil for cleartext.
    ///   - isInputOpen: true to keep standard input open until the process's `endInput`.
    ///   - commands: the first lines of its standard input.
    init(
        _ url: String,
        authority: String?,
        _ options: [String] = [],
        isInputOpen: Bool = false,
        commands: [String] = []
    ) throws {
        self.process = try ChildProcess(
            Self.program,
            [url, authority ?? "-", Self.topic] + options,
            input: commands.map { $0 + "\n" }.joined(),
            isInputOpen: isInputOpen
        )
    }

    /// Starts a worker of `gateway` and waits until it has subscribed.
    static func subscribed(to gateway: RunningGateway, _ options: [String] = []) throws -> SDKWorker {
        let worker = try SDKWorker("https://\(gateway.edge)", authority: gateway.certificateAuthority, options)
        try worker.wait(for: "subscribed")
        return worker
    }

    /// Waits for the first event with this name that was not waited for yet. Events with other names may come in any
    /// order, because several threads print them.
    @discardableResult
    func wait(for name: String, within seconds: Double = 60) throws -> Event {
        if let index = self.unclaimed.firstIndex(where: { $0.name == name }) { return self.unclaimed.remove(at: index) }
        let deadline = ContinuousClock.now + .seconds(seconds)
        // Other events do not prolong the wait.
        while let line = try self.process.line(within: Self.seconds(until: deadline)) {
            let values = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
            let event = Event(name: values["event"] as? String ?? "", values: values)
            if event.name == name { return event }
            self.unclaimed.append(event)
        }
        let seen = self.unclaimed.map { [$0.name, $0.text("message")].compactMap(\.self).joined(separator: ": ") }
            .joined(separator: ", ")
        throw ChildProcess.Failure(description: "the worker ended before \(name); it showed: \(seen)")
    }

    private static func seconds(until deadline: ContinuousClock.Instant) -> Double {
        let (seconds, attoseconds) = max(.zero, deadline - .now).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// Stops the worker and waits until it has ended.
    func stop() throws -> Int32 { try self.process.end().status }
}

extension RunningGateway {
    /// Sends a push with an instruction for the worker.
    @discardableResult
    func instruct(_ device: Int, _ instruction: String) throws -> Answer {
        let token = String(repeating: String(format: "%04x", device), count: 16)
        let payload = #"{"aps":{"content-available":1},\#(instruction)}"#
        return try self.push(token, topic: SDKWorker.topic, payload: payload)
    }
}

/// A peer that accepts workers like a gateway, sends what a test writes, and never ends a stream on its own.
final class ScriptedGateway {
    let process: ChildProcess
    let url: String
    let certificateAuthority: String
    // Holds the certificate.
    private let folder: RestartFolder

    init() throws {
        self.folder = try RestartFolder()
        try self.folder.putCertificates()
        self.certificateAuthority = self.folder.state.appendingPathComponent("ca.pem").path
        let state = self.folder.state
        let files = ["server.pem", "server.key"].map { state.appendingPathComponent($0).path }
        let script = RunningGateway.client("scripted_gateway.py")
        self.process = try ChildProcess("python3", [script] + files, isInputOpen: true)
        self.url = "https://127.0.0.1:\(try self.process.line() ?? "")"
        try self.answer("/extend", "{}")
        try self.answer("/progress", #"{"deadline":1}"#)
    }

    /// Sends a wake; `members` are added to the members of every wake.
    func wake(_ name: String, _ members: String, deadline: Int? = 1, payload: String = "{}") throws {
        let deadline = deadline.map { #","deadline":\#($0)"# } ?? ""
        let data = #"{"wake":"\#(name)","device":"ab","topic":"t"\#(deadline),\#(members),"payload":\#(payload)}"#
        try self.event("wake", data)
    }

    /// Sends an event.
    func event(_ name: String, _ data: String) throws {
        try self.command(["do": "event", "name": name, "data": data])
    }

    /// Closes the connection of the open stream.
    func endStream() throws { try self.command(["do": "end"]) }

    /// Sets the answer to requests about wakes on paths with this suffix. All other requests are answered with 204.
    func answer(_ end: String, _ body: String) throws {
        try self.command(["do": "answer", "method": "POST", "end": end, "status": 200, "body": body, "lasts": true])
    }

    private func command(_ command: [String: Any]) throws {
        try self.process.write(ChildProcess.json(command))
    }

    /// Returns the body of the next request whose path has this suffix.
    @discardableResult
    func request(_ end: String) throws -> String { try self.requestLine(end).body }

    /// Returns the bodies of the next requests whose paths have these suffixes, which may arrive in any order.
    func requests(_ ends: String...) throws -> [String] {
        var bodies: [String: String] = [:]
        while bodies.count < ends.count, let line = try self.process.line() {
            let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard words.count > 1, let end = ends.first(where: { words[1].hasSuffix($0) }) else { continue }
            bodies[end] = String(words.last ?? "")
        }
        return ends.map { bodies[$0] ?? "" }
    }

    /// Returns the path, including the query, of the next request whose path has this suffix.
    func path(_ end: String) throws -> String { try self.requestLine(end).path }

    private func requestLine(_ end: String) throws -> (path: String, body: String) {
        while let line = try self.process.line() {
            let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard words.count > 1 else { continue }
            if words[1].hasSuffix(end) || words[1].contains("\(end)?") {
                return (String(words[1]), String(words.last ?? ""))
            }
        }
        throw ChildProcess.Failure(description: "the peer ended before a request to \(end)")
    }
}
