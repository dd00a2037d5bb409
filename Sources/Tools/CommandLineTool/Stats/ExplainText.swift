package import Wire

/// What the gateway knows of one device, for people.
package enum ExplainText {
    /// The answer of `/v1/devices/<token>`, the reason first.
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
        add("held by", (device["held"]?.elements ?? []).compactMap(\.text).joined(separator: ", ").ifNotEmpty ?? "-")
        add("next eligible", self.instant(device["nextEligibleAt"]) ?? "at once")
        add("last launch", self.instant(device["lastLaunchAt"]) ?? "never")
        add("launches in window", self.launches(device))
        add("penalty", device["penalty"]?.number.map { JSONNumber.text(of: $0) })
        add("usage", TaskText.usage(device["usage"]))
        let conditions = (device["conditions"] ?? .null).members
        add("conditions", conditions.map { "\($0.name)=\($0.value.text ?? $0.value.described)" }.joined(separator: " "))
        lines += TaskText.explanation(device)
        let recent = device["recent"]?.elements ?? []
        if !recent.isEmpty { lines += ["", "recent, newest first:"] + recent.map { self.event($0) } }
        return lines.map { TerminalText.harmless($0) + "\n" }.joined()
    }

    private static func instant(_ value: JSONValue?) -> String? {
        value?.number.map { TimeText.instant($0) }
    }

    private static func launches(_ device: JSONValue) -> String? {
        guard let count = device["launchesInWindow"]?.number else { return nil }
        let end = self.instant(device["windowEndsAt"]).map { ", until \($0)" } ?? ""
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
        for (label, name) in [
            ("received", "receivedAt"), ("expires", "expiresAt"), ("launched", "launchedAt"), ("deadline", "deadline"),
        ] {
            if let instant = self.instant(value[name]) { parts.append("\(label) \(instant)") }
        }
        return parts.joined(separator: ", ")
    }

    private static func event(_ event: JSONValue) -> String {
        let parts = [
            self.instant(event["at"]), event["event"]?.text, event["apnsID"]?.text,
            event["kind"]?.text, event["task"]?.text ?? event["session"]?.text,
            event["detail"].flatMap { $0 == .null ? nil : $0.text ?? $0.described },
        ]
        return "  " + parts.compactMap { $0 }.joined(separator: "  ")
    }
}

extension String {
    fileprivate var ifNotEmpty: String? { self.isEmpty ? nil : self }
}
