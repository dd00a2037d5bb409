import Gateway
import Testing
import Wire

@Suite("The query of what happens", .timeLimit(.minutes(15)))
struct EventFilterTests {
    private static func filter(_ query: String) throws -> EventFilter {
        try query.withByteView { view in try EventFilter(query: view) }
    }

    @Test("It takes each of its parameters once, and everything without one")
    func taken() throws {
        #expect(try Self.filter("") == EventFilter())
        let token = String(repeating: "AB", count: 32)
        let all = try Self.filter("outcome=refused&device=\(token)&topic=com.example.app")
        #expect(all.topic == "com.example.app" && all.outcome == "refused")
        #expect(all.device == token.lowercased(), "as events spell it")
        for outcome in ["push", "coalesced", "no-wake", "newData", "lost", "expired", "BadDeviceToken"] {
            #expect(try Self.filter("outcome=\(outcome)").outcome == outcome)
        }
    }

    @Test(
        "What is wrong is named, with what is taken",
        arguments: [
            ("outcome=colesced", "(coalesced?)"), ("outcome=", "not \"\""),
            ("topic=a&topic=b", "topic may come only once."), ("topik=a", "topik is not a parameter (topic?)"),
        ]
    )
    func refused(query: String, message: String) throws {
        let error = try #require(throws: APIError.self) { _ = try Self.filter(query) }
        #expect(error.status == 400 && error.reason == "BadQuery")
        #expect(error.message.contains(message), "\(error.message)")
    }

    @Test("What is no topic and no token is said to be none")
    func none() throws {
        #expect(try #require(throws: APIError.self) { _ = try Self.filter("topic=%20") }.reason == "BadTopic")
        #expect(try #require(throws: APIError.self) { _ = try Self.filter("device=1") }.reason == "BadDeviceToken")
    }
}
