import Wire

/// What `wakegate task submit` asks for, as the body of its request.
package enum TaskSubmission {
    /// The kinds of tasks that are submitted.
    package static let kinds = ["appRefresh", "processing", "continued"]
    static let strategies = ["queue", "fail"]

    /// The JSON object that the gateway takes. Identifiers and texts are judged by the gateway.
    ///
    /// - Parameters:
    ///   - parsed: a command line of `task submit`.
    ///   - now: in milliseconds since 1970.
    /// - Throws: `badUsage` for a word that is none of those there are, and for an option that is of another kind.
    package static func body(_ parsed: ParsedCommand, now: Int64) throws(CommandFailure) -> String {
        let kind = try self.word("--kind", of: parsed, among: self.kinds) ?? ""
        try self.checkOptions(parsed, of: kind)
        var members = [("identifier", JSONText.quoted(parsed.arguments[1])), ("kind", JSONText.quoted(kind))]
        if let text = parsed.text("--earliest-begin") {
            members.append(("earliestBegin", String(try TaskMoment.milliseconds(text, now: now))))
        }
        if parsed.isSet("--requires-network") { members.append(("requiresNetworkConnectivity", "true")) }
        if parsed.isSet("--requires-power") { members.append(("requiresExternalPower", "true")) }
        for name in ["title", "subtitle"] {
            if let text = parsed.text("--\(name)") { members.append((name, JSONText.quoted(text))) }
        }
        if let strategy = try self.word("--strategy", of: parsed, among: self.strategies) {
            members.append(("strategy", JSONText.quoted(strategy)))
        }
        let resources = parsed.all("--resource").map { JSONText.quoted($0) }
        if !resources.isEmpty { members.append(("resources", "[\(resources.joined(separator: ","))]")) }
        return "{\(members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ","))}"
    }

    /// The value of an option that takes one of a few words; nil when it is not given.
    ///
    /// - Throws: `badUsage`, with the nearest word.
    static func word(
        _ option: String,
        of parsed: ParsedCommand,
        among words: [String]
    ) throws(CommandFailure) -> String? {
        guard let text = parsed.text(option) else { return nil }
        guard words.contains(text) else {
            let near = NearestMatch.find(text, in: words).map { "; did you mean \($0)?" } ?? ""
            throw .usage("\(option) is \"\(text)\"; write \(words.joined(separator: ", "))\(near)")
        }
        return text
    }

    private static func checkOptions(_ parsed: ParsedCommand, of kind: String) throws(CommandFailure) {
        let homes = [
            ("--requires-network", "processing"), ("--requires-power", "processing"), ("--title", "continued"),
            ("--subtitle", "continued"), ("--strategy", "continued"), ("--resource", "continued"),
            ("--wait", "continued"),
        ]
        for (option, home) in homes where parsed.isSet(option) && kind != home {
            throw .usage("\(option) is for --kind \(home), and the task is of kind \(kind); leave it out")
        }
    }
}
