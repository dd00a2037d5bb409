import HTTPClient
import Platform
package import Wire

extension CommandDefinition {
    package static let health = CommandDefinition(
        "health",
        "check whether the running gateway accepts pushes",
        options: OptionDefinition.client,
        example: "wakegate health",
        notes: """
            It requests GET /readyz from the admin listener, and prints the answer. The exit status is 0 if the gateway
            accepts pushes. It is 1 if the gateway does not, for example while it drains or cannot store, or if no
            answer arrives in 4 seconds.
            """,
        run: { parsed throws(CommandFailure) in
            let location = try GatewayLocation(parsed, side: .admin)
            var request = location.request("GET", "/readyz")
            // The timeout of a container's health check is longer.
            request.timeoutMilliseconds = 4000
            let response = try location.answer(request, with: try location.client())
            let line = TerminalText.sanitized(response.text.split(separator: "\n").joined(separator: " "))
            guard response.status != 503 else { throw .failed("the gateway is not ready: \(line)") }
            try GatewayAnswer.check(response)
            Console.out("\(line)\n")
            return 0
        }
    )
}

extension CommandDefinition {
    package static let backup = CommandDefinition(
        "backup",
        "back up the state of the running gateway",
        arguments: [ArgumentDefinition("NAME", "the backup's name: letters, digits, '.', '_' and '-', at most 64")],
        options: OptionDefinition.client,
        example: "wakegate backup before-upgrade",
        notes: """
            The backup is a state folder in `backups` of the gateway's state folder. When it is complete, its path is
            printed to standard output. `wakegate serve --state COPY` starts on it. It contains devices, pushes and
            counters, token.key, token.revoked, token.issued and history.key, but not the delivery log, certificates or
            the configuration. A large state takes time: the command waits as long as the gateway answers other
            requests.
            """,
        run: BackupCommand.run
    )
}

/// `wakegate backup`.
enum BackupCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let body = Array("{\"name\":\(JSONText.quoted(parsed.arguments[0]))}".utf8)
        var request = location.request("POST", "/v1/backup", body: body)
        // Copying a large state may take a long time.
        request.timeoutMilliseconds = nil
        let answer = try GatewayAnswer.object(try self.answer(request, location))
        Console.out("\(answer["path"]?.text ?? "")\n")
        return 0
    }

    /// The interval and the timeout of the liveness checks during a backup, in milliseconds.
    private static let probes: (interval: Int64, timeout: Int) = (5000, 15_000)

    /// Waits for an answer without a time limit, while checks show that the gateway is alive.
    private static func answer(
        _ request: HTTPRequest,
        _ location: GatewayLocation
    ) throws(CommandFailure) -> HTTPResponse {
        let client = try location.client()
        do throws(HTTPClientError) {
            let copy = try client.start(request)
            var probe: HTTPRequestID?
            var probesAt = SystemClock.monotonic + self.probes.interval
            while true {
                for case .ended(let id, let result) in client.poll(timeoutMilliseconds: 1000) {
                    if id == copy { return try result.get() }
                    // Any answer proves that the gateway is alive.
                    _ = try result.get()
                    probe = nil
                    probesAt = SystemClock.monotonic + self.probes.interval
                }
                guard probe == nil, SystemClock.monotonic >= probesAt else { continue }
                var request = location.request("GET", "/healthz")
                request.timeoutMilliseconds = self.probes.timeout
                probe = try client.start(request)
            }
        } catch {
            throw location.failure(error)
        }
    }
}

extension CommandDefinition {
    package static let reload = CommandDefinition(
        "reload",
        "make the running gateway reload its configuration",
        options: [OptionDefinition("--json", "print the gateway's answer unchanged")] + OptionDefinition.client,
        example: "wakegate reload",
        notes: """
            The file takes effect as a whole or not at all. A reload ends only connections whose client certificate the
            new files do not accept. Every changed key is printed with its old and its new value. The keys that need a
            restart are named, and keep their values until then.
            If the file has faults, all of them are printed, the old configuration stays in effect, and the exit status
            is 1.
            """,
        run: ReloadCommand.run
    )
}

/// `wakegate reload`.
package enum ReloadCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let response = try parsed.ask("POST", "/v1/reload")
        guard let faults = self.faults(response) else { return try parsed.show(response, self.text) }
        throw .failed("the old configuration stays in effect, as the new one has \(faults)")
    }

    /// Returns the changed keys, one per line.
    package static func text(_ answer: JSONValue) -> String {
        var lines = self.lines(answer["changed"], "changed")
        lines += self.lines(answer["needsRestart"], "needs a restart")
        if lines.isEmpty { lines.append("nothing has changed") }
        let version = answer["policyVersion"]?.number.map { JSONNumber.text(of: $0) } ?? "unknown"
        return lines.joined(separator: "\n") + "\nlaunch policy: version \(version)\n"
    }

    private static func lines(_ changes: JSONValue?, _ what: String) -> [String] {
        (changes?.elements ?? []).map { change in
            let (old, new) = (change["old"]?.described ?? "", change["new"]?.described ?? "")
            return TerminalText.sanitized("\(what): \(change["key"]?.text ?? ""): \(old) -> \(new)")
        }
    }

    /// Returns the faults of a refused configuration in the format of `serve --check`; nil for other answers.
    private static func faults(_ response: HTTPResponse) -> String? {
        guard response.status == 400, let answer = JSONValue(response.body),
            let faults = answer["faults"]?.elements, !faults.isEmpty
        else { return nil }
        let lines = faults.map { fault in
            let parts = ["problem", "remedy"].map { fault[$0]?.text ?? "" }
            return TerminalText.sanitized("  \(fault["key"]?.text ?? ""): \(parts.joined(separator: "; "))")
        }
        let count = faults.count == 1 ? "a fault" : "\(faults.count) faults"
        return "\(count):\n" + lines.joined(separator: "\n")
    }
}

extension CommandDefinition {
    private static let topicName = ArgumentDefinition("TOPIC", "the topic")

    package static let topicList = CommandDefinition(
        "topic list",
        "list the topics, with their pending pushes and pauses",
        options: [OptionDefinition("--json", "print the gateway's answer unchanged")] + OptionDefinition.client,
        example: "wakegate topic list",
        run: { parsed throws(CommandFailure) in
            try parsed.show(try parsed.ask("GET", "/v1/topics"), TopicCommands.text)
        }
    )

    package static let topicPause = CommandDefinition(
        "topic pause",
        "pause a topic: accept pushes but launch nothing",
        arguments: [topicName],
        options: OptionDefinition.client,
        example: "wakegate topic pause com.example.app",
        notes: "Wakes in flight continue. `wakegate device launch` still launches a single device, for a test.",
        run: TopicCommands.pausing(true)
    )

    package static let topicResume = CommandDefinition(
        "topic resume",
        "resume a topic: launch its pending pushes by its policy again",
        arguments: [topicName],
        options: OptionDefinition.client,
        example: "wakegate topic resume com.example.app",
        run: TopicCommands.pausing(false)
    )
}

/// `wakegate topic`.
package enum TopicCommands {
    static func pausing(_ isPaused: Bool) -> CommandDefinition.Run {
        { parsed throws(CommandFailure) in
            let topic = parsed.arguments[0]
            let path = "/v1/topics/\(URLPath.component(topic))/\(isPaused ? "pause" : "resume")"
            try GatewayAnswer.check(try parsed.ask("POST", path, body: []))
            Console.error(
                isPaused
                    ? "wakegate: \(topic) is paused; new pushes wait until `wakegate topic resume \(topic)`"
                    : "wakegate: \(topic) is not paused; pending pushes launch by its policy"
            )
            return 0
        }
    }

    /// Returns the topics and their counts as a table.
    ///
    /// - Parameter answer: the answer of `/v1/topics`.
    package static func text(_ answer: JSONValue) -> String {
        let topics = answer["topics"]?.elements ?? []
        guard !topics.isEmpty else { return "no topics\n" }
        let counts = ["devices", "workers", "pending", "inFlight"]
        let rows = topics.map { topic in
            [topic["topic"]?.text ?? "-"] + counts.map { TableText.number(topic[$0]) }
                + [topic["paused"] == .bool(true) ? "paused" : ""]
        }
        return TableText.lines([["topic", "devices", "workers", "pending", "in flight", ""]] + rows)
    }
}

extension CommandDefinition {
    package static let faultsList = CommandDefinition(
        "faults list",
        "list the fault rules of the running `wakegate dev`, with their counts",
        options: [OptionDefinition("--json", "print the gateway's answer unchanged")] + OptionDefinition.client,
        example: "wakegate faults list",
        run: { parsed throws(CommandFailure) in
            try parsed.show(try parsed.ask("GET", FaultCommands.path), FaultCommands.table)
        }
    )

    package static let faultsSet = CommandDefinition(
        "faults set",
        "replace all fault rules of the running `wakegate dev`",
        arguments: [ArgumentDefinition("FILE", "the rules in JSON5, as for `wakegate dev --faults`")],
        options: OptionDefinition.client,
        example: "wakegate faults set faults.json5",
        notes: """
            Ends the old rules' effects on provider tokens and stream limits. `wakegate dev --help` has an example.
            """,
        run: FaultCommands.set
    )

    package static let faultsClear = CommandDefinition(
        "faults clear",
        "remove every fault rule of the running `wakegate dev`",
        options: OptionDefinition.client,
        example: "wakegate faults clear",
        run: { parsed throws(CommandFailure) in
            try GatewayAnswer.check(try parsed.ask("DELETE", FaultCommands.path))
            return 0
        }
    )
}

/// `wakegate faults`.
package enum FaultCommands {
    fileprivate static let path = "/v1/faults"
    /// The maximum number of bytes read from a file: more than any gateway accepts.
    private static let bytesMax = 4 << 20

    static func set(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let file = parsed.arguments[0]
        let rules = try CommandFile.contents(file, bytesMax: self.bytesMax, remedy: "name the file with the rules")
        let answer = try GatewayAnswer.object(try parsed.ask("PUT", self.path, body: rules))
        for warning in answer["warnings"]?.elements ?? [] {
            Console.error("wakegate: warning: \(TerminalText.sanitized(warning.text ?? ""))")
        }
        Console.out(self.table(answer))
        return 0
    }

    /// Returns one line for each rule: its id, its counts, and its text. A rule that can no longer apply is marked as
    /// spent.
    package static func table(_ answer: JSONValue) -> String {
        let rows = (answer["rules"]?.elements ?? []).map { rule in
            [
                rule["id"]?.text ?? "-", self.count(rule["matched"]),
                self.count(rule["fired"]) + (rule["spent"] == .bool(true) ? " (spent)" : ""),
                self.line(rule["rule"] ?? .null),
            ]
        }
        guard !rows.isEmpty else { return "no fault rules\n" }
        return TableText.lines([["id", "matched", "fired", "rule"]] + rows)
    }

    private static func count(_ value: JSONValue?) -> String { JSONNumber.text(of: value?.number ?? 0) }

    /// Returns a rule in JSON5 without unnecessary quotes: `when: {every: 3}, then: {stuck: true}`.
    private static func line(_ rule: JSONValue) -> String {
        let names = ["when", "then", "times"]
        return names.compactMap { name in rule[name].map { "\(name): \(self.written($0))" } }.joined(separator: ", ")
    }

    private static func written(_ value: JSONValue) -> String {
        switch value {
        case .object(let members):
            "{" + members.map { "\($0.name): \(self.written($0.value))" }.joined(separator: ", ") + "}"
        case .array(let values): "[" + values.map { self.written($0) }.joined(separator: ", ") + "]"
        case .null, .bool, .number, .string: value.described
        }
    }
}
