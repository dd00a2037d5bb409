import HTTPClient
import Platform
package import Wire

extension CommandDefinition {
    package static let stats = CommandDefinition(
        "stats",
        "print the gateway's counters, or explain one device",
        options: [
            OptionDefinition("--topic TOPIC", "only counters of one topic"),
            OptionDefinition("--device TOKEN", "explain a device: the reasons why it waits, and its latest events"),
            OptionDefinition("--since TIME", "count only the last 10m, 1h, 24h ..., or from a time; at most a day"),
            OptionDefinition("--until TIME", "end the period of --since 10m, 1h ... ago, or at a time"),
            OptionDefinition("--json", "print the gateway's answer unchanged"),
            OptionDefinition("--watch", "update the output in place; without a terminal, print a line per second"),
        ] + OptionDefinition.client,
        example: "wakegate stats --topic com.example.app --since 1h",
        notes: """
            The output also has the durations of wakes in the last 30 to 60 minutes, the slowest workers first. Counts
            of a period start again with the gateway; the line `since` has their start.

            --watch redraws in place, follows the terminal's size, and continues when the gateway comes back; q or
            Control-C ends it. NO_COLOR=1 removes the colors. With --json each answer is one line.
            """,
        run: StatsCommand.run
    )
}

/// `wakegate stats`.
package enum StatsCommand {
    /// The time for which the gateway stores counts, in milliseconds.
    private static let countedMax: Int64 = 86_400_000

    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        guard !parsed.isSet("--topic") || !parsed.isSet("--device") else {
            throw .usage("--topic and --device exclude each other; a device has one topic: write --device alone")
        }
        guard !parsed.isSet("--since") || !parsed.isSet("--device") && !parsed.isSet("--watch") else {
            throw .usage(
                "--since counts pushes of a topic or of all topics; leave out --watch, and in place of --device write "
                    + "`wakegate device events TOKEN --since TIME`"
            )
        }
        guard parsed.isSet("--since") || !parsed.isSet("--until") else {
            throw .usage("--until ends the period that --since begins; write --since 24h --until 12h")
        }
        let location = try GatewayLocation(parsed, side: .admin)
        guard parsed.isSet("--watch") else {
            return try self.showOnce(parsed, location, try location.client())
        }
        let topic = parsed.text("--topic").map { WatchSubject.topic($0) }
        let subject = parsed.text("--device").map { WatchSubject.device($0) } ?? topic ?? .gateway
        let connection = try WatchConnection(subject.source, location)
        var session = ViewSession(
            StatsView(subject, place: location.place),
            connection,
            isJSON: parsed.isSet("--json")
        )
        return try session.run()
    }

    private static func showOnce(
        _ parsed: ParsedCommand,
        _ location: GatewayLocation,
        _ client: HTTPClient
    ) throws(CommandFailure) -> Int32 {
        var path = "/v1/stats"
        if let topic = parsed.text("--topic") { path += "/topics/\(URLPath.component(topic))" }
        if let device = parsed.text("--device") { path = "/v1/devices/\(URLPath.component(device))" }
        let period = try PushListCommand.period(parsed, spanMax: self.countedMax, now: SystemClock.wall)
        if !period.isEmpty { path += "?\(period.joined(separator: "&"))" }
        let response = try location.answer(location.request("GET", path), with: client)
        let value = try GatewayAnswer.object(response)
        guard !parsed.isSet("--json"), !parsed.isSet("--device") else {
            return parsed.show(json: response.text, ExplainText.text(value))
        }
        guard !parsed.isSet("--since") else {
            Console.out(StatsText.recent(value) + StatsText.shortfall(value, parsed, now: SystemClock.wall))
            return 0
        }
        var text = StatsText.totals(value) + "\n" + StatsText.recent(value) + StatsText.durations(value)
        if !parsed.isSet("--topic") {
            let topics = try location.answer(location.request("GET", "/v1/topics"), with: client)
            text += StatsText.topics(try GatewayAnswer.object(topics))
        }
        Console.out(text)
        return 0
    }
}

/// Formats the gateway's statistics.
package enum StatsText {
    /// Returns the answer of `/v1/stats` as a list of counters with names.
    package static func totals(_ stats: JSONValue) -> String {
        let workers = stats["workers"] ?? .null
        let devices = stats["devices"] ?? .null
        var rows = self.counts(stats, ["pushes", "wakes"])
        rows.append(("pushes per launch", self.pushesPerLaunch(stats)))
        rows += self.counts(stats, ["tasks", "sessions"].filter { self.isAnything(stats[$0] ?? .null) })
        rows += [
            ("workers connected", self.number(workers["connected"])),
            ("  slots busy", "\(self.number(workers["busy"])) of \(self.number(workers["slots"]))"),
        ]
        if let stalled = self.stalled(workers) { rows.append(("  stalled", stalled)) }
        rows += [
            ("devices registered", self.number(devices["registered"])),
            ("  held", self.sum(devices["held"])),
            ("limits met", self.sum(stats["limits"], without: self.routineLimits)),
            ("since", stats["since"]?.text ?? "-"),
        ]
        if let loss = stats["acceptedLoss"] {
            rows.append(("started without", "\(loss["file"]?.text ?? "-"): \(loss["cause"]?.text ?? "-")"))
        }
        rows += self.gateways(stats)
        return rows.map { TerminalText.sanitized("\(self.padded($0.0, to: 26))\($0.1)") + "\n" }.joined()
    }

    /// Returns the counts as a table with a column for each period.
    package static func recent(_ stats: JSONValue) -> String {
        let recent = stats["recent"] ?? .null
        let heads = [("hour", "last hour"), ("day", "last day"), ("since", "in the period")]
        let periods = heads.compactMap { name, head in recent[name].map { (head: head, value: $0) } }
        guard !periods.isEmpty else { return "" }
        func row(_ name: String, _ value: (JSONValue) -> String) -> [String] {
            [name] + periods.map { value($0.value) }
        }
        // A period has no counters of pending or refused pushes, which come after the first four.
        let counters = (self.counters["pushes"] ?? []).prefix(4) + (self.counters["wakes"] ?? [])
        var rows = [[""] + periods.map(\.head)]
        rows += counters.map { name, counter in row(name) { self.count($0[counter]) } }
        rows.append(row("since") { $0["since"]?.text ?? "-" })
        if periods.contains(where: { $0.value["until"] != nil }) {
            rows.append(row("until") { $0["until"]?.text ?? "-" })
        }
        return TableText.lines(rows)
    }

    /// Returns a line if the counts begin later than `--since`; otherwise an empty text.
    package static func shortfall(_ stats: JSONValue, _ parsed: ParsedCommand, now: Int64) -> String {
        guard let text = stats["recent"]?["since"]?["since"]?.text, let since = TaskMoment.instant(text),
            let asked = parsed.text("--since"),
            let start = DurationText.milliseconds(asked).map({ now - $0 }) ?? TaskMoment.instant(asked), since > start
        else { return "" }
        let topic = parsed.text("--topic").map { " --topic \(ShellText.quoted($0))" } ?? ""
        let list = "`wakegate push list\(topic) --outcome coalesced --since \(ShellText.quoted(asked))`"
        let cause = "not the whole period: counts begin with the gateway's start"
        return "\ncounted since \(text), \(cause); \(list) goes back further\n"
    }

    /// Returns the durations of wakes, for each kind with the slowest workers first; empty if there were no wakes.
    package static func durations(_ stats: JSONValue) -> String {
        let durations = stats["durations"] ?? .null
        let rows = [("workers", "(no name)"), ("topics", "(all workers)")].flatMap { list, nameless in
            (durations[list]?.elements ?? []).map { row in
                let name = row["worker"]?.text ?? ""
                let times = ["p50Ms", "p95Ms", "maxMs"].map { self.milliseconds(row[$0]) }
                return [name.isEmpty ? nameless : name, row["topic"]?.text ?? "-", row["kind"]?.text ?? "-"]
                    + [self.number(row["count"])] + times
            }
        }
        guard !rows.isEmpty else { return "" }
        let head = ["worker", "topic", "kind", "wakes", "median", "95 %", "longest"]
        return "\nduration of wakes since \(durations["since"]?.text ?? "-"), slowest first\n"
            + TableText.lines([head] + rows)
    }

    private static func milliseconds(_ value: JSONValue?) -> String {
        guard let milliseconds = value?.number else { return "-" }
        guard milliseconds >= 1000 else { return "\(JSONNumber.text(of: milliseconds)) ms" }
        return "\(JSONNumber.text(of: (milliseconds / 100).rounded() / 10)) s"
    }

    /// Returns the number of stalled streams with the reason of one of them; nil if no stream is stalled.
    private static func stalled(_ workers: JSONValue) -> String? {
        workers["stallReason"]?.text.map { "\(self.number(workers["stalled"])), \($0)" }
    }

    /// Returns the gateways that share the database; empty without a database.
    private static func gateways(_ stats: JSONValue) -> [(String, String)] {
        guard let gateways = stats["gateways"]?.elements else { return [] }
        var rows = [("gateways", "\(gateways.count)")]
        for gateway in gateways {
            var words = [
                "number \(self.number(gateway["number"]))", gateway["version"]?.text ?? "-",
                "workers \(self.number(gateway["workers"]))",
                "slots busy \(self.number(gateway["busy"])) of \(self.number(gateway["slots"]))",
                "wakes \(self.number(gateway["wakes"]))", "lag \(self.number(gateway["lag"])) ms",
                "since \(gateway["since"]?.text ?? "-")",
            ]
            if gateway["draining"] == .bool(true) { words.append("stopping") }
            if gateway["own"] == .bool(true) { words.append("this one") }
            rows.append(("  \(gateway["name"]?.text ?? "-")", words.joined(separator: ", ")))
        }
        let differences = stats["configurationDifferences"]?.elements ?? []
        if !differences.isEmpty {
            rows.append(("  unlike configurations", differences.compactMap(\.text).joined(separator: ", ")))
        }
        return rows
    }

    /// The rows for the counters of each member of the statistics: the name of a row, and the counter's name.
    private static let counters = [
        "pushes": [
            ("pushes accepted", "accepted"), ("  completed", "completed"), ("  coalesced", "coalesced"),
            ("  discarded", "discarded"), ("  pending", "pending"), ("  in flight", "inFlight"),
            ("pushes without a wake", "noWake"), ("pushes rejected", "rejected"),
        ],
        "wakes": [("wakes launched", "launched"), ("  ended", "results")],
        "tasks": [
            ("tasks submitted", "submitted"), ("  replaced", "replaced"), ("  cancelled", "cancelled"),
            ("  discarded", "discarded"), ("  ended", "results"), ("  waiting", "waiting"), ("  running", "inFlight"),
            ("tasks refused", "refused"),
        ],
        "sessions": [
            ("transfers finished", "finished"), ("  completed", "completed"), ("  discarded", "discarded"),
            ("  waiting", "waiting"), ("  in flight", "inFlight"), ("session wakes ended", "results"),
            ("transfers refused", "refused"),
        ],
    ]

    /// Returns the rows of these members of the statistics.
    private static func counts(_ stats: JSONValue, _ members: [String]) -> [(String, String)] {
        members.flatMap { member in
            (self.counters[member] ?? []).map { ($0, self.count(stats[member]?[$1])) }
        }
    }

    /// Returns true if any counter of an object or of its members is not zero.
    static func isAnything(_ counters: JSONValue) -> Bool {
        counters.members.contains { member in
            member.value.number.map { $0 != 0 } ?? member.value.members.contains { ($0.value.number ?? 0) != 0 }
        }
    }

    /// Returns the answer of `/v1/topics` as a table; empty without topics.
    package static func topics(_ answer: JSONValue) -> String {
        let topics = answer["topics"]?.elements ?? []
        guard !topics.isEmpty else { return "" }
        let columns = ["devices", "workers", "pending", "inFlight"]
        let width = (topics.compactMap { $0["topic"]?.text?.count }.max() ?? 0) + 2
        var text = "\n\(self.padded("topic", to: max(width, 7)))"
        text += columns.map { self.padded($0, to: 10) }.joined() + "\n"
        for topic in topics {
            text += self.padded(TerminalText.sanitized(topic["topic"]?.text ?? ""), to: max(width, 7))
            text += columns.map { self.padded(self.number(topic[$0]), to: 10) }.joined() + "\n"
            if let stalled = self.stalled(topic) { text += "  stalled \(TerminalText.sanitized(stalled))\n" }
            if let webhook = topic["webhook"] { text += "  webhook \(TerminalText.sanitized(self.webhook(webhook)))\n" }
        }
        return text
    }

    /// Returns a webhook's URL and its state, such as `https://hooks.example.com/ resting until ..., 5 failures:
    /// Connection refused`.
    private static func webhook(_ webhook: JSONValue) -> String {
        var text = "\(webhook["url"]?.text ?? "") \(webhook["state"]?.text ?? "")"
        if let until = webhook["restingUntil"]?.number { text += " until \(TimeText.due(until))" }
        guard let failures = webhook["failures"]?.number, failures > 0 else { return text }
        text += failures == 1 ? ", 1 failure" : ", \(JSONNumber.text(of: failures)) failures"
        return webhook["lastError"]?.text.map { "\(text): \($0)" } ?? text
    }

    /// The limits that normal load reaches. The gateway logs them as `routineLimitMet`.
    package static let routineLimits: Set = [
        "acceptsPerTurn", "readBytesPerTurn", "requestsAtEngineMax", "outputBytesMax", "outputFramesMax",
        "streamingBytesSoftMax", "wakeBytesPerStreamMax", "historyBytesMax", "historySeconds", "idleSeconds",
        "lingerSeconds",
    ]

    /// Returns the sum of an object's counters, and the nonzero counters by name, such as `3 (expired 2, forceQuit 1)`.
    private static func sum(_ counters: JSONValue?, without omitted: Set<String> = []) -> String {
        let members = (counters ?? .null).members.filter {
            ($0.value.number ?? 0) != 0 && !omitted.contains($0.name)
        }
        let sum = members.reduce(0) { $0 + ($1.value.number ?? 0) }
        guard !members.isEmpty else { return "0" }
        let parts = members.map { "\($0.name) \(self.number($0.value))" }
        return "\(JSONNumber.text(of: sum)) (\(parts.joined(separator: ", ")))"
    }

    /// Returns a counter, or the sum of an object's counters with the nonzero ones.
    private static func count(_ value: JSONValue?) -> String {
        if case .object = value { self.sum(value) } else { self.number(value) }
    }

    static func number(_ value: JSONValue?) -> String {
        value?.number.map { JSONNumber.text(of: ($0 * 1000).rounded() / 1000) } ?? "-"
    }

    /// Returns the average number of ended pushes per launch, with an explanation if it is below one.
    static func pushesPerLaunch(_ stats: JSONValue) -> String {
        guard let ratio = stats["pushesPerLaunch"]?.number, ratio > 0 else { return "-" }
        let text = JSONNumber.text(of: (ratio * 100).rounded() / 100)
        guard ratio < 1 else { return text }
        return "\(text) (\(self.endedAndLaunched(stats)): those again after a failure, those by hand without a push, "
            + "and those in flight count)"
    }

    /// Returns the average number of ended pushes per launch in a shorter form.
    static func fewPushesPerLaunch(_ stats: JSONValue) -> String {
        guard let ratio = stats["pushesPerLaunch"]?.number, ratio > 0 else { return "- pushes a launch" }
        let text = JSONNumber.text(of: (ratio * 100).rounded() / 100)
        return "\(text) pushes a launch: \(self.endedAndLaunched(stats))"
    }

    private static func endedAndLaunched(_ stats: JSONValue) -> String {
        let ended = ["completed", "coalesced"].compactMap { stats["pushes"]?[$0]?.number }.reduce(0, +)
        let launched = stats["wakes"]?["launched"]?.number ?? 0
        return "\(JSONNumber.text(of: ended)) ended, \(JSONNumber.text(of: launched)) launches"
    }

    private static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }
}

/// Formats the gateway's state of one device.
package enum ExplainText {
    /// Returns the answer of `/v1/devices/<token>` as text, beginning with the reason.
    package static func text(_ device: JSONValue) -> String {
        var lines = [device["why"]?.text ?? "", ""]
        func add(_ name: String, _ value: String?) {
            guard let value else { return }
            lines.append(name + String(repeating: " ", count: max(1, 20 - name.count)) + value)
        }
        add("device", device["token"]?.text)
        add("topic", device["topic"]?.text)
        add("registered", self.instant(device["registeredAt"]))
        add("pending", self.push(device["pending"]))
        add("in flight", self.push(device["inFlight"]))
        add("held by", self.list(device["held"]?.elements.compactMap(\.text) ?? []))
        add("next eligible", device["nextEligibleAt"]?.number.map { TimeText.due($0) } ?? "at once")
        add("last launch", self.instant(device["lastLaunchAt"]) ?? "never")
        add("launches in window", self.launches(device))
        add("penalty", device["penalty"]?.number.map { JSONNumber.text(of: $0) })
        add("usage", TaskText.usage(device["usage"]))
        let conditions = (device["conditions"] ?? .null).members
        add("conditions", conditions.map { "\($0.name)=\($0.value.text ?? $0.value.described)" }.joined(separator: " "))
        lines += TaskText.explanation(device)
        let recent = device["recent"]?.elements ?? []
        if !recent.isEmpty { lines += ["", "recent, newest first:"] + recent.map { "  \(self.event($0))" } }
        return lines.map { TerminalText.sanitized($0) + "\n" }.joined()
    }

    private static func instant(_ value: JSONValue?) -> String? { value?.number.map { TimeText.instant($0) } }

    static func list(_ texts: [String]) -> String { texts.isEmpty ? "-" : texts.joined(separator: ", ") }

    /// Returns the times for which a push or a task has waited, each with its cause, such as `10 min interval`.
    static func waits(_ waited: JSONValue?) -> [String] {
        let holds = (waited?["hold"]?.members ?? []).map { ($0.name, $0.value) }
        let waits = [("interval", waited?["interval"] ?? .null)] + holds + [("worker", waited?["worker"] ?? .null)]
        return waits.compactMap { name, value in
            guard let time = value.number, time > 0 else { return nil }
            return "\(DurationText.text(milliseconds: Int64(Int(saturating: time)))) \(name)"
        }
    }

    private static func launches(_ device: JSONValue) -> String? {
        guard let count = device["launchesInWindow"]?.number else { return nil }
        let end = (device["windowEndsAt"]?.number).map { ", until \(TimeText.due($0))" } ?? ""
        return JSONNumber.text(of: count) + end
    }

    private static func push(_ value: JSONValue?) -> String {
        guard let value, value != .null else { return "-" }
        var parts: [String] = []
        for (label, name) in [("apns-id", "apnsID"), ("wake", "wake")] {
            if let text = value[name]?.text { parts.append("\(label) \(text)") }
        }
        for (label, name) in [("priority", "priority"), ("attempts", "attempts"), ("coalesced", "coalesced")] {
            if let number = value[name]?.number { parts.append("\(label) \(JSONNumber.text(of: number))") }
        }
        for (label, name, isToCome) in [
            ("received", "receivedAt", false), ("expires", "expiresAt", true), ("launched", "launchedAt", false),
            ("deadline", "deadline", true),
        ] {
            guard let time = value[name]?.number else { continue }
            parts.append("\(label) \(isToCome ? TimeText.due(time) : TimeText.instant(time))")
        }
        return parts.joined(separator: ", ")
    }

    /// Returns an event of a device as a line.
    static func event(_ event: JSONValue) -> String {
        // Only a discarded push or task needs the waits here. The detail of a launch already contains them.
        let waits = event["event"]?.text == "discard" ? self.waits(event["waited"]) : []
        let detail = event["detail"].flatMap { $0 == .null ? nil : $0.text.map(EventText.detail) ?? $0.described }
        let parts = [
            self.instant(event["at"]), event["event"]?.text, event["apnsID"]?.text,
            event["kind"]?.text, event["task"]?.text ?? event["session"]?.text,
            waits.isEmpty ? detail : "\(detail ?? "-"), waited \(waits.joined(separator: ", "))",
            event["held"]?.text.map { "held by \($0)" }, event["worker"]?.text.map { "worker \($0)" },
        ]
        return parts.compactMap { $0 }.joined(separator: "  ")
    }
}
