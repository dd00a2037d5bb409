package import HTTPClient
package import Wire

/// Reads the answers of a gateway.
package enum GatewayAnswer {
    /// The JSON object of a good answer.
    ///
    /// - Throws: with the gateway's reason and message when the status is not 2xx.
    package static func object(_ response: HTTPResponse) throws(CommandFailure) -> JSONValue {
        try self.check(response)
        guard let value = JSONValue(object: response.body) else {
            throw CommandFailure(
                .failed,
                "the answer is not a JSON object; check whether --gateway names a WakeGate gateway"
            )
        }
        return value
    }

    /// - Throws: with the gateway's reason and message when the status is not 2xx.
    package static func check(_ response: HTTPResponse) throws(CommandFailure) {
        try self.check(response) { self.remedies[$0] }
    }

    /// - Parameter remedy: what this program can do about a reason.
    static func check(_ response: HTTPResponse, _ remedy: (String) -> String?) throws(CommandFailure) {
        guard !response.isSuccess else { return }
        let refusal = self.refusal(response)
        let remedy = (response.refusal?.reason).flatMap(remedy)
        throw CommandFailure(.failed, remedy.map { "\(refusal)\n\($0)" } ?? refusal)
    }

    /// What this program can do about a reason.
    private static let remedies = [
        "UnknownDevice":
            "`wakegate device list` shows the devices there are, and `wakegate device register` makes one known",
        "UnknownTopic": "`wakegate topic list` shows the topics there are",
    ]

    /// Status, reason and message of an answer that is an error.
    package static func refusal(_ response: HTTPResponse) -> String {
        TerminalText.harmless("the gateway answered \(response.refusal?.words ?? "\(response.status)")")
    }
}

extension ParsedCommand {
    /// Asks the gateway on its admin listener, and waits for the answer, whatever its status.
    func ask(_ method: String, _ path: String, body: [UInt8]? = nil) throws(CommandFailure) -> HTTPResponse {
        let location = try GatewayLocation(self, side: .admin)
        return try location.answer(location.request(method, path, body: body), with: try location.client())
    }

    /// Shows a good answer unchanged with `--json`, else in words.
    func show(_ response: HTTPResponse, _ text: (JSONValue) -> String) throws(CommandFailure) -> Int32 {
        let answer = try GatewayAnswer.object(response)
        if self.isSet("--json") { Console.out(json: response.text) } else { Console.out(text(answer)) }
        return 0
    }
}

/// A list that a gateway tells page by page, shown as one.
struct ListPages {
    /// The most rows of a page.
    private static let pageMax = 1000

    /// The member of an answer that has its rows.
    let member: String
    /// Said when the list is empty.
    let nothing: String
    /// The path of a page of at most `limit` rows, behind a place if one is named.
    let path: (_ limit: Int, _ after: String?) -> String
    /// The lines of a page, the first with the head of the table.
    let text: (_ rows: [JSONValue], _ withHead: Bool) -> String

    /// Shows as many rows as `--limit` says, a hundred without it, behind `--after`; with `--json` the answers.
    func show(_ parsed: ParsedCommand) throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let client = try location.client()
        let isJSON = parsed.isSet("--json")
        var after = parsed.text("--after")
        var left = parsed.integer("--limit") ?? 100
        var isEmpty = true
        repeat {
            let request = location.request("GET", self.path(min(left, Self.pageMax), after))
            let response = try location.answer(request, with: client)
            let answer = try GatewayAnswer.object(response)
            let rows = answer[self.member]?.elements ?? []
            if isJSON {
                Console.out(json: response.text)
            } else {
                Console.out(self.text(rows, isEmpty))
            }
            isEmpty = isEmpty && rows.isEmpty
            left -= rows.count
            after = answer["next"]?.text
        } while after != nil && left > 0
        guard !isJSON else { return 0 }
        if isEmpty { Console.error("wakegate: \(self.nothing)") }
        if let after { Console.error("wakegate: there may be more; continue with --after \(after)") }
        return 0
    }

    /// The query of a page: the options that are given, each by its own name, and the page.
    static func query(_ parsed: ParsedCommand, _ names: [String], limit: Int, after: String?) -> [String] {
        var query = names.compactMap { name in
            parsed.text("--\(name)").map { "\(name)=\(URLPath.component($0))" }
        }
        query.append("limit=\(limit)")
        if let after { query.append("after=\(URLPath.component(after))") }
        return query
    }
}
