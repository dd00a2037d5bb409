package import HTTPClient
package import Wire

/// Reads the answers of a gateway.
package enum GatewayAnswer {
    /// Returns the JSON object of a successful answer.
    ///
    /// - Throws: the gateway's reason and message if the status is not 2xx.
    package static func object(_ response: HTTPResponse) throws(CommandFailure) -> JSONValue {
        try self.check(response)
        guard let value = JSONValue(object: response.body) else {
            throw .failed("the answer is not a JSON object; check whether --gateway names a WakeGate gateway")
        }
        return value
    }

    /// - Throws: the gateway's reason and message if the status is not 2xx.
    package static func check(_ response: HTTPResponse) throws(CommandFailure) {
        try self.check(response) { self.remedies[$0] }
    }

    /// - `remedy`: returns help for a reason, with commands of this program; nil if there is none.
    static func check(_ response: HTTPResponse, _ remedy: (String) -> String?) throws(CommandFailure) {
        guard !response.isSuccess else { return }
        let refusal = self.refusal(response)
        guard let remedy = (response.refusal?.reason).flatMap(remedy) else { throw .failed(refusal) }
        // A remedy that names a route of the API is replaced by commands of this program.
        guard let end = refusal.firstRange(of: "; "), refusal[end.upperBound...].contains(" /v1/") else {
            throw .failed("\(refusal)\n\(remedy)")
        }
        throw .failed("\(refusal[..<end.upperBound])\(remedy)")
    }

    /// The remedies for reasons, with commands of this program.
    private static let remedies = [
        "UnknownDevice":
            "`wakegate device list` shows the devices there are, and `wakegate device register` makes one known",
        "UnknownTopic": "`wakegate topic list` shows the topics there are",
    ]

    /// Returns the status, reason and message of an error answer.
    package static func refusal(_ response: HTTPResponse) -> String {
        TerminalText.sanitized("the gateway answered \(response.refusal?.words ?? "\(response.status)")")
    }
}

extension HTTPResponse {
    /// True if the gateway refuses the request only for now: it limits requests, or cannot answer.
    package var isPassing: Bool { self.status == 429 || self.status >= 500 }
}

extension HTTPClientError {
    /// True if the same request may succeed later.
    var isPassing: Bool { [.unreachable, .timedOut, .broken].contains(self.code) }
}

extension ParsedCommand {
    /// Sends a request to the gateway's admin listener and returns the answer, whatever its status.
    func ask(_ method: String, _ path: String, body: [UInt8]? = nil) throws(CommandFailure) -> HTTPResponse {
        let location = try GatewayLocation(self, side: .admin)
        return try location.answer(location.request(method, path, body: body), with: try location.client())
    }

    /// Prints a note if the gateway does not know the topic or the device in the options. A list for them is empty.
    func noteUnknown(_ location: GatewayLocation, _ client: HTTPClient) throws(CommandFailure) {
        for (option, path) in [("--topic", "/v1/stats/topics"), ("--device", "/v1/devices")] {
            guard let name = self.text(option) else { continue }
            let request = location.request("GET", "\(path)/\(URLPath.component(name))")
            let response = try location.answer(request, with: client)
            guard response.status == 404 else { continue }
            do throws(CommandFailure) { try GatewayAnswer.check(response) } catch {
                Console.error("wakegate: \(error.message)")
            }
        }
    }

    /// Prints a successful answer: unchanged with `--json`, otherwise as text.
    func show(_ response: HTTPResponse, _ text: (JSONValue) -> String) throws(CommandFailure) -> Int32 {
        let answer = try GatewayAnswer.object(response)
        return self.show(json: response.text, text(answer))
    }

    /// Prints JSON with `--json`, otherwise text. Returns the exit status.
    @discardableResult
    package func show(json: String, _ text: @autoclosure () -> String) -> Int32 {
        if self.isSet("--json") { Console.out(json: json) } else { Console.out(text()) }
        return 0
    }
}

/// A list that the gateway sends in pages and the command prints as one list.
struct ListPages {
    /// The maximum number of rows in a page.
    private static let pageMax = 1000

    /// The member of the answer that contains the rows.
    let member: String
    /// The message for an empty list.
    let nothing: String
    /// Returns the path of a page with at most `limit` rows after a position; nil for the first page.
    let path: (_ limit: Int, _ after: String?) -> String
    /// Returns the lines of a page. The first page includes the table head.
    let text: (_ rows: [JSONValue], _ withHeader: Bool) -> String

    /// Prints the rows after `--after`, at most `--limit` (default 100). With `--json`, prints the answers unchanged.
    func show(_ parsed: ParsedCommand) throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let client = try location.client()
        var after = parsed.text("--after")
        var left = parsed.integer("--limit") ?? 100
        var isEmpty = true
        repeat {
            let request = location.request("GET", self.path(min(left, Self.pageMax), after))
            let response = try location.answer(request, with: client)
            let answer = try GatewayAnswer.object(response)
            let rows = answer[self.member]?.elements ?? []
            parsed.show(json: response.text, self.text(rows, isEmpty))
            isEmpty = isEmpty && rows.isEmpty
            left -= rows.count
            after = answer["next"]?.text
        } while after != nil && left > 0
        guard !parsed.isSet("--json") else { return 0 }
        if isEmpty {
            Console.error("wakegate: \(self.nothing)")
            try parsed.noteUnknown(location, client)
        }
        if let after { Console.error("wakegate: there may be more; continue with --after \(after)") }
        return 0
    }

    /// Returns the query of a page: the options with these names, the page's limit, and its start.
    static func query(_ parsed: ParsedCommand, _ names: [String], limit: Int, after: String?) -> [String] {
        var query = names.compactMap(parsed.parameter)
        query.append("limit=\(limit)")
        if let after { query.append("after=\(URLPath.component(after))") }
        return query
    }
}

extension ParsedCommand {
    /// Returns an option as a parameter of a query, such as `topic=com.example.app`. Multiple values are separated by
    /// commas.
    func parameter(_ name: String) -> String? {
        guard let values = self.values["--\(name)"] else { return nil }
        let words = values.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
        return "\(name)=\(words.map { URLPath.component(String($0)) }.joined(separator: ","))"
    }
}
