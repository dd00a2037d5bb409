import Gateway
import Policy
import Testing
import Wire

@Suite("The document of the interface and the operations")
struct OpenAPIDocumentTests {
    @Test("Each operation is described as it is declared, and nothing else is")
    func agreement() throws {
        let served = try OperationDesk().serve("GET /openapi.json", isLocal: true)
        let document = try OpenAPIDocument(try #require(served.text))
        #expect(document.differences(from: Operation.all) == [])
        #expect(document.count == Operation.all.count { $0.access.role != .provider })
        #expect(document.count > 30)
    }

    @Test("A policy has each parameter by its name, and no other")
    func policy() throws {
        let served = try OperationDesk().serve("GET /openapi.json", isLocal: true)
        let document = try JSONReader.read(try #require(served.text))
        let policy = try #require(document["components"]?["schemas"]?["Policy"])
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

    @Test("Every maxLength but one, which counts characters alone, has an equal x-maxBytes")
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
        // The id of finished transfers is counted in characters.
        #expect(
            inCharacters.count == 1 && inCharacters.first?.hasSuffix("/properties/id: 64") == true,
            "\(inCharacters)"
        )
    }

    private func document() throws -> JSONValue {
        let served = try OperationDesk().serve("GET /openapi.json", isLocal: true)
        return try JSONReader.read(try #require(served.text))
    }

    @Test("An operation that is missing on either side, or is another there, is named")
    func disagreement() throws {
        let text =
            #"{"paths": {"/one": {"get": {"operationId": "one", "tags": ["operator"], "responses": {"200": {}}}}, "#
            + #""/two": {"post": {}}}}"#
        let document = try OpenAPIDocument(text)
        func operation(_ name: String, _ method: HTTPMethod, _ path: PathPattern) -> Operation {
            Operation(
                name,
                method,
                path,
                on: .admin,
                by: .operator,
                reaching: .nothing,
                answers: [200],
                afterFailedStore: .answered
            ) { _ in .handedOn }
        }
        let found = document.differences(from: [operation("first", .get, "/one"), operation("three", .put, "/3/{x}")])
        #expect(
            found == [
                "first, name: one in the document, first in the table",
                "first, statuses: [200] in the document, [200, 401, 403, 413, 429, 503] in the table",
                "put /3/{x} is not described", "post /two is declared nowhere",
            ]
        )
    }
}
