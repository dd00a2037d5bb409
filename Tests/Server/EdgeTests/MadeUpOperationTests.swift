import Gateway
import Testing
import Wire

@Suite("An operation that does not exist")
struct MadeUpOperationTests {
    /// All that adding an operation takes besides a place in `openapi.json`.
    private static let applaud = Operation(
        "applaud",
        .put,
        "/v1/topics/{topic}/applause",
        on: .admin,
        by: .operator,
        reaching: .topicInPath,
        answers: [200, 400],
        afterFailedStore: .answered
    ) { call throws(APIError) in
        guard call.query == "loud" || call.query.isEmpty else {
            throw APIError(400, "BadQuery", "Applause is loud, or takes nothing.")
        }
        let topic = String(decoding: try call.topic(), as: UTF8.self)
        return .answered(OperationAnswer(Array(#"{"applauded":"\#(topic)"}"#.utf8)))
    }

    private static let path = "/v1/topics/\(OperationDesk.topic)/applause"

    private func desk() throws -> OperationDesk { try OperationDesk(Operation.all + [Self.applaud]) }

    @Test("It is served once it is declared, beside all others")
    func served() throws {
        let desk = try self.desk()
        let applauded = #"{"applauded":"\#(OperationDesk.topic)"}"#
        #expect(desk.serve("PUT \(Self.path)", isLocal: true).text == applauded)
        #expect(desk.serve("PUT \(Self.path)?loud", token: try desk.token(.operator)).text == applauded)
        #expect(desk.serve("PUT \(Self.path)?soft", isLocal: true).refusal == "400 BadQuery")
        #expect(desk.serve("GET /v1/stats", isLocal: true).asked != nil)
        #expect(try OperationDesk().serve("PUT \(Self.path)", isLocal: true).refusal == "404 BadPath")
    }

    @Test("Where and how it is served is what it declares")
    func routing() throws {
        let desk = try self.desk()
        #expect(desk.serve("POST \(Self.path)", isLocal: true).allow == "PUT")
        #expect(desk.serve("PUT \(Self.path)", on: .edge).refusal == "404 BadPath")
    }

    @Test("Whom it is refused to is what it declares")
    func authorization() throws {
        let desk = try self.desk()
        #expect(desk.serve("PUT \(Self.path)").refusal == "401 MissingToken")
        let others = [
            try desk.token(.worker, OperationDesk.topic), try desk.token(.operator, OperationDesk.otherTopic),
        ]
        for token in others { #expect(desk.serve("PUT \(Self.path)", token: token).refusal == "403 Forbidden") }
    }

    @Test("As long as openapi.json lacks it, the check of the document says so")
    func document() throws {
        let document = try OpenAPIDocument(try #require(self.desk().serve("GET /openapi.json", isLocal: true).text))
        let differences = document.differences(from: Operation.all + [Self.applaud])
        #expect(differences == ["put /v1/topics/{topic}/applause is not described"])
    }
}
