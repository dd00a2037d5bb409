package import Wire

/// The gateway's statistics, for people.
package enum StatsText {
    /// The answer of `/v1/stats` as a list of counters.
    package static func totals(_ stats: JSONValue) -> String {
        let pushes = stats["pushes"] ?? .null
        let wakes = stats["wakes"] ?? .null
        let workers = stats["workers"] ?? .null
        let devices = stats["devices"] ?? .null
        var rows: [(String, String)] = [
            ("pushes accepted", self.number(pushes["accepted"])),
            ("  completed", self.number(pushes["completed"])),
            ("  coalesced", self.number(pushes["coalesced"])),
            ("  discarded", self.sum(pushes["discarded"])),
            ("  pending", self.number(pushes["pending"])),
            ("  in flight", self.number(pushes["inFlight"])),
            ("pushes that wake nobody", self.number(pushes["noWake"])),
            ("pushes rejected", self.sum(pushes["rejected"])),
            ("wakes launched", self.number(wakes["launched"])),
            ("  ended", self.sum(wakes["results"])),
            ("pushes per launch", self.pushesPerLaunch(stats)),
        ]
        rows += self.tasks(stats["tasks"]) + self.sessions(stats["sessions"])
        rows += [
            ("workers connected", self.number(workers["connected"])),
            ("  slots busy", "\(self.number(workers["busy"])) of \(self.number(workers["slots"]))"),
        ]
        if let stalled = self.stalled(workers) { rows.append(("  stalled", stalled)) }
        rows += [
            ("devices registered", self.number(devices["registered"])),
            ("  held", self.sum(devices["held"])),
            ("limits met", self.sum(stats["limits"])),
            ("since", stats["since"]?.text ?? "-"),
        ]
        if let loss = stats["acceptedLoss"] {
            rows.append(("started without", "\(loss["file"]?.text ?? "-"): \(loss["cause"]?.text ?? "-")"))
        }
        rows += self.gateways(stats)
        return rows.map { TerminalText.harmless("\(self.padded($0.0, to: 26))\($0.1)") + "\n" }.joined()
    }

    /// Returns the number of stalled streams and the reason of one of them, or nil if none is stalled.
    private static func stalled(_ workers: JSONValue) -> String? {
        workers["stallReason"]?.text.map { "\(self.number(workers["stalled"])), \($0)" }
    }

    /// The gateways on the same database; nothing where there is none.
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

    /// Background tasks; nothing before the first.
    private static func tasks(_ tasks: JSONValue?) -> [(String, String)] {
        guard let tasks, self.isAnything(tasks) else { return [] }
        return [
            ("tasks submitted", self.number(tasks["submitted"])),
            ("  replaced", self.number(tasks["replaced"])),
            ("  cancelled", self.number(tasks["cancelled"])),
            ("  discarded", self.sum(tasks["discarded"])),
            ("  ended", self.sum(tasks["results"])),
            ("  waiting", self.number(tasks["waiting"])),
            ("  running", self.number(tasks["inFlight"])),
            ("tasks refused", self.sum(tasks["refused"])),
        ]
    }

    /// Finished transfers of background sessions; nothing before the first.
    private static func sessions(_ sessions: JSONValue?) -> [(String, String)] {
        guard let sessions, self.isAnything(sessions) else { return [] }
        return [
            ("transfers finished", self.number(sessions["finished"])),
            ("  completed", self.number(sessions["completed"])),
            ("  discarded", self.sum(sessions["discarded"])),
            ("  waiting", self.number(sessions["waiting"])),
            ("  in flight", self.number(sessions["inFlight"])),
            ("session wakes ended", self.sum(sessions["results"])),
            ("transfers refused", self.number(sessions["refused"])),
        ]
    }

    /// Whether any counter of an object, or of the objects in it, is not zero.
    static func isAnything(_ counters: JSONValue) -> Bool {
        counters.members.contains { member in
            member.value.number.map { $0 != 0 } ?? member.value.members.contains { ($0.value.number ?? 0) != 0 }
        }
    }

    /// The answer of `/v1/topics` as a table; nothing without topics.
    package static func topics(_ answer: JSONValue) -> String {
        let topics = answer["topics"]?.elements ?? []
        guard !topics.isEmpty else { return "" }
        let columns = ["devices", "workers", "pending", "inFlight"]
        let width = (topics.compactMap { $0["topic"]?.text?.count }.max() ?? 0) + 2
        var text = "\n\(self.padded("topic", to: max(width, 7)))"
        text += columns.map { self.padded($0, to: 10) }.joined() + "\n"
        for topic in topics {
            text += self.padded(TerminalText.harmless(topic["topic"]?.text ?? ""), to: max(width, 7))
            text += columns.map { self.padded(self.number(topic[$0]), to: 10) }.joined() + "\n"
            if let stalled = self.stalled(topic) { text += "  stalled \(TerminalText.harmless(stalled))\n" }
            if let webhook = topic["webhook"] { text += "  webhook \(TerminalText.harmless(self.webhook(webhook)))\n" }
        }
        return text
    }

    /// A webhook's URL and how it is: `https://hooks.example.com/ resting until ..., 5 failures: Connection refused`.
    private static func webhook(_ webhook: JSONValue) -> String {
        var text = "\(webhook["url"]?.text ?? "") \(webhook["state"]?.text ?? "")"
        if let until = webhook["restingUntil"]?.number { text += " until \(TimeText.instant(until))" }
        guard let failures = webhook["failures"]?.number, failures > 0 else { return text }
        text += failures == 1 ? ", 1 failure" : ", \(JSONNumber.text(of: failures)) failures"
        return webhook["lastError"]?.text.map { "\(text): \($0)" } ?? text
    }

    /// The sum of an object's counters, and those that are not zero by name: `3 (expired 2, forceQuit 1)`.
    private static func sum(_ counters: JSONValue?) -> String {
        let members = (counters ?? .null).members.filter { ($0.value.number ?? 0) != 0 }
        let sum = members.reduce(0) { $0 + ($1.value.number ?? 0) }
        guard !members.isEmpty else { return "0" }
        let parts = members.map { "\($0.name) \(self.number($0.value))" }
        return "\(JSONNumber.text(of: sum)) (\(parts.joined(separator: ", ")))"
    }

    private static func number(_ value: JSONValue?) -> String {
        value?.number.map { JSONNumber.text(of: ($0 * 1000).rounded() / 1000) } ?? "-"
    }

    /// How many pushes a launch was for, as far as pushes have ended; where that is less than one, why.
    static func pushesPerLaunch(_ stats: JSONValue) -> String {
        guard let ratio = stats["pushesPerLaunch"]?.number, ratio > 0 else { return "-" }
        let text = JSONNumber.text(of: (ratio * 100).rounded() / 100)
        guard ratio < 1 else { return text }
        return "\(text) (\(self.endedAndLaunched(stats)): those again after a failure, those by hand without a push, "
            + "and those in flight count)"
    }

    /// The same where there is little room.
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
