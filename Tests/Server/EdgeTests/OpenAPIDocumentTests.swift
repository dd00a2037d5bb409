import Gateway
import Policy
import Testing
import Wire

@Suite("The document of the interface and the operations")
struct OpenAPIDocumentTests {
    @Test("The document describes each operation as declared, and no others")
    func agreement() throws {
        let document = try OpenAPIDocument(self.text())
        #expect(document.differences(from: Operation.all) == [])
        #expect(document.count == Operation.all.count { $0.access.role != .provider })
        #expect(document.count > 30)
    }

    @Test("The policy has exactly the parameters of the code, by name")
    func policy() throws {
        let policy = try #require(self.document()["components"]?["schemas"]?["Policy"])
        #expect(Set(policy["properties"]?.members.map(\.name) ?? []) == Set(PolicyParameter.allCases.map(\.rawValue)))
        #expect(policy["additionalProperties"] == .bool(false))
    }

    @Test("The outcome of a wake that has ended is one of those that the document names")
    func outcomes() throws {
        let schemas = try self.document()["components"]?["schemas"]
        func words(_ schema: String) -> Set<String> {
            guard case .array(let values)? = schemas?[schema]?["enum"] else { return [] }
            return Set(values.compactMap { value in if case .string(let text) = value { text } else { nil } })
        }
        #expect(words("Outcome") == Set(WakeOutcome.allCases.map(\.rawValue)))
        #expect(words("TaskOutcome") == Set(TaskOutcome.allCases.map(\.rawValue)))
        guard case .array(let schemasOfOutcome)? = schemas?["Error"]?["properties"]?["outcome"]?["anyOf"] else {
            Issue.record("the outcome is not one of several")
            return
        }
        let names = schemasOfOutcome.map { $0["$ref"] }
        #expect(names == ["Outcome", "TaskOutcome"].map { .string("#/components/schemas/\($0)") })
    }

    @Test("Every maxLength has an equal x-maxBytes, except for one that counts only characters")
    func byteBounds() throws {
        func bounds(_ value: JSONValue, _ path: String) -> [String] {
            switch value {
            case .object(let members):
                let own = value["maxLength"].map { length in
                    value["x-maxBytes"] == length ? [] : ["\(path): \(length.described)"]
                }
                return (own ?? []) + members.flatMap { bounds($0.value, "\(path)/\($0.name)") }
            case .array(let elements): return elements.flatMap { bounds($0, path) }
            case .null, .bool, .number, .string: return []
            }
        }
        let inCharacters = bounds(try self.document(), "")
        // The length of the id of finished transfers is counted in characters.
        #expect(
            inCharacters.count == 1 && inCharacters.first?.hasSuffix("/properties/id: 64") == true,
            "\(inCharacters)"
        )
    }

    private func text() throws -> String {
        try #require(OperationService().serve("GET /openapi.json", isLocal: true).text)
    }

    private func document() throws -> JSONValue { try JSONReader.read(self.text()) }

    @Test("An operation that is missing on one side, or differs, is named")
    func disagreement() throws {
        let text =
            #"{"paths": {"/one": {"get": {"operationId": "one", "tags": ["operator"], "responses": {"200": {}}}}, "#
            + #""/two": {"post": {}}}}"#
        let document = try OpenAPIDocument(text)
        func operation(_ name: String, _ method: HTTPMethod, _ path: PathPattern) -> Operation {
            Operation(name, method, path, by: .operator, reaching: .nothing, afterFailedStore: .answered) { _ in
                .handedOn
            }
        }
        let found = document.differences(from: [operation("first", .get, "/one"), operation("three", .put, "/3/{x}")])
        #expect(
            found == [
                "first, name: one in the document, first in the table",
                #"first, common statuses: [] in the document, ["401", "403", "413", "429", "503"] in the table"#,
                "put /3/{x} is not described", "post /two is declared nowhere",
            ]
        )
    }
}

/// The parts of `openapi.json` that operations also declare.
struct OpenAPIDocument {
    private let paths: JSONValue

    /// - Throws: `JSONFault` if the text is not JSON.
    init(_ text: String) throws {
        self.paths = try JSONReader.read(text)["paths"] ?? .null
    }

    /// The number of operations in the document.
    var count: Int { self.paths.members.reduce(0) { $0 + $1.value.members.count } }

    /// Returns the differences between the document and the operations, one per line. The provider API has separate
    /// documents.
    func differences(from operations: [Operation]) -> [String] {
        let declared = operations.filter { $0.access.role != .provider }
        let spelt = Set(declared.map(Self.place))
        let undeclared = self.paths.members.flatMap { path in
            path.value.members.map { "\($0.name) \(path.name)" }.filter { !spelt.contains($0) }
        }
        return declared.flatMap { self.differences(of: $0) } + undeclared.map { "\($0) is declared nowhere" }
    }

    private func differences(of operation: Operation) -> [String] {
        let method = Self.place(of: operation).prefix { $0 != " " }
        guard let described = self.paths[operation.path.text]?[String(method)] else {
            return ["\(Self.place(of: operation)) is not described"]
        }
        let statuses = described["responses"]?.members.map(\.name) ?? []
        let isForAnybody = operation.access.role == .unauthenticated
        let hasQuery = Self.elements(described["parameters"]).contains { $0["in"] == .string("query") }
        let hasInput = hasQuery || described["requestBody"] != nil
        // Those for a wrong query or body, a caller without permission, a body that is too large, and a gateway that is
        // overloaded or stops.
        let common = (hasInput ? ["400"] : []) + (isForAnybody ? [] : ["401"]) + ["403", "413", "429", "503"]
        let facts: [(what: String, described: String, declared: String)] = [
            ("name", Self.text(described["operationId"]), operation.name),
            ("listeners", Self.listeners(described), "\(operation.listeners)"),
            ("common statuses", "\(common.filter(statuses.contains))", "\(common)"),
            ("has a success", "\(statuses.contains { $0.hasPrefix("2") })", "true"),
            ("is for anybody", "\(Self.isForAnybody(described))", "\(isForAnybody)"),
            ("is a stream", "\(Self.isStream(described))", "\(operation.isStream)"),
            ("parameter", Self.parameter(described), Self.parameter(of: operation)),
        ]
        return facts.filter { $0.described != $0.declared }.map { fact in
            "\(operation.name), \(fact.what): \(fact.described) in the document, \(fact.declared) in the table"
        }
    }

    private static func place(of operation: Operation) -> String {
        "\(operation.method.name)".lowercased() + " " + operation.path.text
    }

    private static func text(_ value: JSONValue?) -> String {
        guard case .string(let text)? = value else { return "missing" }
        return text
    }

    private static func elements(_ value: JSONValue?) -> [JSONValue] {
        guard case .array(let elements)? = value else { return [] }
        return elements
    }

    private static func listeners(_ described: JSONValue) -> String {
        switch self.text(self.elements(described["tags"]).first) {
        case "worker": "\(Operation.Listeners.edge)"
        case "device": "\(Operation.Listeners.all)"
        case "operator", "fault": "\(Operation.Listeners.admin)"
        case let tag: "those of \(tag)"
        }
    }

    /// Returns true if a request needs no proof although the document requires it by default.
    private static func isForAnybody(_ described: JSONValue) -> Bool {
        self.elements(described["security"]).contains { $0.members.isEmpty }
    }

    private static func isStream(_ described: JSONValue) -> Bool {
        described["responses"]?["200"]?["content"]?["text/event-stream"] != nil
    }

    /// Returns the names of the parameters in the path.
    private static func parameter(_ described: JSONValue) -> String {
        self.elements(described["parameters"]).filter { $0["in"] == .string("path") }.map { self.text($0["name"]) }
            .joined(separator: ", ")
    }

    private static func parameter(of operation: Operation) -> String {
        operation.path.text.split(separator: "/").filter { $0.hasPrefix("{") }.map { $0.dropFirst().dropLast() }
            .joined(separator: ", ")
    }
}
