import Foundation
import Glibc

/// A `wakegate worker` that runs a bash script for each wake, and what a test asks of it.
final class WorkerProcess {
    let process: ChildProcess
    private let gateway: RunningGateway

    /// - Parameters:
    ///   - options: of `wakegate worker`.
    ///   - script: runs in the gateway's folder.
    ///   - launcher: a command and its first arguments, which runs the program that the rest of its arguments name.
    /// It has been subscribed when this returns.
    convenience init(
        _ gateway: RunningGateway,
        topic: String,
        _ options: [String] = [],
        script: String,
        under launcher: [String] = []
    ) throws {
        try self.init(gateway, topic: topic, options, command: ["bash", "-c", script], under: launcher)
    }

    /// - Parameter command: runs in the gateway's folder, with its arguments.
    init(
        _ gateway: RunningGateway,
        topic: String,
        _ options: [String] = [],
        command: [String],
        under launcher: [String] = []
    ) throws {
        self.gateway = gateway
        let worker = [RunningGateway.program, "worker", "--topic", topic] + options + ["--"] + command
        let command = launcher + worker
        let before = try gateway.stats().integer("workers", "connected") ?? 0
        self.process = try ChildProcess(command[0], Array(command.dropFirst()), folder: gateway.folder)
        try gateway.eventually("a worker; its errors: \(self.process.errors)") {
            try gateway.stats().integer("workers", "connected") == before + 1
        }
    }

    /// The next line that a command wrote, without the wake's id.
    func line(within seconds: Double = 60) throws -> String? {
        try self.process.line(within: seconds).map { String($0.dropFirst(33)) }
    }

    /// Waits for standard error to hold a text.
    func says(_ text: String) throws {
        try self.gateway.eventually("\"\(text)\" in: \(self.process.errors)") { self.process.errors.contains(text) }
    }

    /// Whether any process is left in the group.
    static func isGroupThere(_ group: Int32) -> Bool {
        // Those that have ended and that nobody reaped do no harm, and are not counted.
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.contains { name in
            guard Int32(name) != nil, let stat = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
                let end = stat.lastIndex(of: ")")
            else { return false }
            // After the name: state, parent, group.
            let fields = stat[stat.index(after: end)...].split(separator: " ")
            return fields.count > 2 && fields[0] != "Z" && Int32(fields[2]) == group
        }
    }
}

/// A worker of the SDK in a process of its own, which does as its pushes say.
final class SDKWorker {
    struct Event {
        let name: String
        let values: [String: Any]

        func text(_ name: String) -> String? { self.values[name] as? String }

        func integer(_ name: String) -> Int? { (self.values[name] as? NSNumber)?.intValue }
    }

    static let topic = "com.example.sdk"
    static let program = URL(fileURLWithPath: RunningGateway.program)
        .deletingLastPathComponent().appendingPathComponent("wakegate-workers").path

    let process: ChildProcess
    /// What it showed and nobody has waited for yet.
    private var unclaimed: [Event] = []

    /// - Parameters:
    ///   - url: where it looks for its gateway.
    ///   - authority: the file of the authority it trusts; nil for cleartext.
    ///   - isInputOpen: whether standard input stays open until the process's `endInput`.
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

    /// A worker of `gateway` that has subscribed.
    static func subscribed(to gateway: RunningGateway, _ options: [String] = []) throws -> SDKWorker {
        let worker = try SDKWorker("https://\(gateway.edge)", authority: gateway.certificateAuthority, options)
        try worker.wait(for: "subscribed")
        return worker
    }

    /// The first event of this name that nobody has waited for yet. Events of other names may come in any order, as
    /// several threads show them.
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

    /// Stops it, and waits until it has ended by itself.
    func stop() throws -> Int32 {
        self.process.send(SIGTERM)
        return try self.process.finish().status
    }
}

extension RunningGateway {
    /// A push that tells the worker what to do.
    @discardableResult
    func instruct(_ device: Int, _ instruction: String) throws -> Answer {
        let token = String(repeating: String(format: "%04x", device), count: 16)
        let payload = #"{"aps":{"content-available":1},\#(instruction)}"#
        return try self.push(token, topic: SDKWorker.topic, payload: payload)
    }

    func wakes(endedAs outcome: String) throws -> Int? { try self.stats().integer("wakes", "results", outcome) }
}

/// A peer that takes workers as a gateway does, sends what a test writes, and never ends a stream by itself.
final class ScriptedGateway {
    let process: ChildProcess
    let url: String
    let certificateAuthority: String
    // Lends its certificate.
    private let gateway: RunningGateway

    init() throws {
        self.gateway = try RunningGateway()
        self.certificateAuthority = self.gateway.certificateAuthority
        let folder = self.gateway.folder.appendingPathComponent(".wakegate")
        let files = ["server.pem", "server.key"].map { folder.appendingPathComponent($0).path }
        let script = RunningGateway.client("scripted_gateway.py")
        self.process = try ChildProcess("python3", [script] + files, isInputOpen: true)
        self.url = "https://127.0.0.1:\(try self.process.line() ?? "")"
        try self.answer("/extend", "{}")
        try self.answer("/progress", #"{"deadline":1}"#)
    }

    /// Sends a wake; `members` are added to those that every wake has.
    func wake(_ name: String, _ members: String, deadline: Int? = 1, payload: String = "{}") throws {
        let deadline = deadline.map { #","deadline":\#($0)"# } ?? ""
        let data = #"{"wake":"\#(name)","device":"ab","topic":"t"\#(deadline),\#(members),"payload":\#(payload)}"#
        try self.event("wake", data)
    }

    /// Sends an event.
    func event(_ name: String, _ data: String) throws {
        try self.command(["do": "event", "name": name, "data": data])
    }

    /// Ends the connection of the stream that is open.
    func endStream() throws { try self.command(["do": "end"]) }

    /// Answers so from now on what is said of wakes on paths that end like this; all else is answered 204.
    func answer(_ end: String, _ body: String) throws {
        try self.command(["do": "answer", "method": "POST", "end": end, "status": 200, "body": body, "lasts": true])
    }

    private func command(_ command: [String: Any]) throws {
        let data = try JSONSerialization.data(withJSONObject: command)
        try self.process.write(String(decoding: data, as: UTF8.self))
    }

    /// The next request whose path ends like this; its body.
    @discardableResult
    func request(_ end: String) throws -> String { try self.requestLine(end).body }

    /// The next request whose path ends like this; its path with the query.
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
