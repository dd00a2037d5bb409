import Gateway
import Wire

/// `openapi.json`, as far as operations declare the same.
struct OpenAPIDocument {
    private let paths: JSONValue

    /// - Throws: `JSONFault` when the text is no JSON.
    init(_ text: String) throws {
        self.paths = try JSONReader.read(text)["paths"] ?? .null
    }

    /// How many operations it describes.
    var count: Int { self.paths.members.reduce(0) { $0 + $1.value.members.count } }

    /// In what the document and the operations differ, a line each. The provider API has documents of its own.
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
        let facts: [(what: String, described: String, declared: String)] = [
            ("name", Self.text(described["operationId"]), operation.name),
            ("listeners", Self.listeners(described), "\(operation.listeners)"),
            ("statuses", Self.statuses(described), "\(operation.statuses.sorted())"),
            ("is for anybody", "\(Self.isForAnybody(described))", "\(operation.access.role == .anybody)"),
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

    private static func statuses(_ described: JSONValue) -> String {
        "\((described["responses"]?.members ?? []).compactMap { Int($0.name) }.sorted())"
    }

    /// Whether a request needs no proof, whatever the document asks of others.
    private static func isForAnybody(_ described: JSONValue) -> Bool {
        self.elements(described["security"]).contains { $0.members.isEmpty }
    }

    private static func isStream(_ described: JSONValue) -> Bool {
        described["responses"]?["200"]?["content"]?["text/event-stream"] != nil
    }

    /// The names of the parameters in the path.
    private static func parameter(_ described: JSONValue) -> String {
        self.elements(described["parameters"]).filter { $0["in"] == .string("path") }.map { self.text($0["name"]) }
            .joined(separator: ", ")
    }

    private static func parameter(of operation: Operation) -> String {
        operation.path.text.split(separator: "/").filter { $0.hasPrefix("{") }.map { $0.dropFirst().dropLast() }
            .joined(separator: ", ")
    }
}
