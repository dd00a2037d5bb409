import Wire

/// A route of the agent: how it is asked, and what of.
package struct AgentOperation: Sendable {
    package let method: String
    /// The parts of the path; `*` stands for a name.
    package let path: [String]
    /// What a request with these names, this query and this body asks for.
    let decode:
        @Sendable (_ names: [String], _ query: AgentQuery, _ body: JSONValue?) throws(AgentFault) -> AgentCommand
    /// Whether there must be a body.
    let hasBody: Bool

    init(
        _ method: String,
        _ path: String,
        hasBody: Bool = false,
        _ decode: @escaping @Sendable ([String], AgentQuery, JSONValue?) throws(AgentFault) -> AgentCommand
    ) {
        self.method = method
        self.path = path.split(separator: "/").map(String.init)
        self.hasBody = hasBody
        self.decode = decode
    }

    /// The names in a path of this operation; nil for another path.
    func names(in parts: [Substring]) -> [String]? {
        guard parts.count == self.path.count else { return nil }
        var names: [String] = []
        for (part, wanted) in zip(parts, self.path) {
            if wanted == "*" { names.append(String(part)) } else if wanted != part { return nil }
        }
        return names
    }

    /// Every operation.
    package static let all: [AgentOperation] = [
        AgentOperation("PUT", "v1/sessions/*", hasBody: true) { (names, _, body) throws(AgentFault) in
            .putSession(try AgentInput.session(names[0]), try AgentInput.change(body))
        },
        AgentOperation("GET", "v1/sessions") { (_, _, _) throws(AgentFault) in .sessions },
        AgentOperation("GET", "v1/sessions/*") { (names, _, _) throws(AgentFault) in
            .session(try AgentInput.session(names[0]))
        },
        AgentOperation("DELETE", "v1/sessions/*") { (names, _, _) throws(AgentFault) in
            .deleteSession(try AgentInput.session(names[0]))
        },
        AgentOperation("POST", "v1/sessions/*/transfers", hasBody: true) { (names, _, body) throws(AgentFault) in
            .submit(try AgentInput.session(names[0]), try AgentInput.submission(body))
        },
        AgentOperation("GET", "v1/sessions/*/transfers") { (names, query, _) throws(AgentFault) in
            .transfers(
                try AgentInput.session(names[0]),
                state: try query.state(),
                limit: try query.limit(),
                after: try query.after()
            )
        },
        AgentOperation("GET", "v1/sessions/*/transfers/*") { (names, _, _) throws(AgentFault) in
            .transfer(try AgentInput.session(names[0]), try AgentInput.transfer(names[1]))
        },
        AgentOperation("DELETE", "v1/sessions/*/transfers/*") { (names, query, _) throws(AgentFault) in
            .cancel(
                try AgentInput.session(names[0]),
                try AgentInput.transfer(names[1]),
                keeps: try query.keeps()
            )
        },
        AgentOperation("POST", "v1/sessions/*/transfers/*/take", hasBody: true) { (names, _, body) throws(AgentFault) in
            let place = try AgentInput.place(body)
            return .take(
                try AgentInput.session(names[0]),
                try AgentInput.transfer(names[1]),
                to: place.path,
                replaces: place.replaces
            )
        },
        AgentOperation("GET", "v1/sessions/*/events") { (names, _, _) throws(AgentFault) in
            .events(try AgentInput.session(names[0]))
        },
        AgentOperation("GET", "v1/status") { (_, _, _) throws(AgentFault) in .status },
        AgentOperation("GET", "metrics") { (_, _, _) throws(AgentFault) in .metrics },
        AgentOperation("GET", "openapi.json") { (_, _, _) throws(AgentFault) in .openAPI },
        AgentOperation("GET", "healthz") { (_, _, _) throws(AgentFault) in .health },
    ]
}

/// The query of a request.
package struct AgentQuery: Sendable {
    private var values: [String: String] = [:]

    package init(_ text: Substring) {
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            self.values[String(parts[0])] = parts.count == 2 ? String(parts[1]) : ""
        }
    }

    func state() throws(AgentFault) -> TransferState? {
        guard let text = self.values["state"] else { return nil }
        guard let state = TransferState.allCases.first(where: { $0.name == text }) else {
            let names = TransferState.allCases.map(\.name).joined(separator: ", ")
            throw AgentFault(400, "BadQuery", "state is \"\(text)\"; write one of \(names).")
        }
        return state
    }

    func limit() throws(AgentFault) -> Int {
        guard let text = self.values["limit"] else { return 1000 }
        guard let limit = Int(text), (1...AgentRoom.listMax).contains(limit) else {
            throw AgentFault(400, "BadQuery", "limit is \"\(text)\"; write a number from 1 to \(AgentRoom.listMax).")
        }
        return limit
    }

    func after() throws(AgentFault) -> TransferID? {
        guard let text = self.values["after"] else { return nil }
        guard let id = TransferID(text) else {
            throw AgentFault(400, "BadQuery", "after is \"\(text)\"; write the id of a transfer of the session.")
        }
        return id
    }

    func keeps() throws(AgentFault) -> Bool {
        switch self.values["keep"] {
        case nil, "0"?: false
        case "1"?: true
        case let text?: throw AgentFault(400, "BadQuery", "keep is \"\(text)\"; write keep=1, or nothing.")
        }
    }
}
