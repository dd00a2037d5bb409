import Gateway
import Testing
import Wire

@Suite("The query of what happened to a device", .timeLimit(.minutes(15)))
struct EventQueryTests {
    private static func selection(_ query: String) throws -> EventSelection {
        try query.withByteView { view in try EventQuery(view).selection }
    }

    @Test("It takes each of its parameters once, in any order, and has a limit without one")
    func taken() throws {
        let none = try Self.selection("")
        #expect(none.kind == nil && none.limit == EventSelection.limitByDefault && none.before == nil)
        let all = try Self.selection("before=5.1&limit=1000&kind=task")
        #expect(all.kind == .task && all.limit == 1000 && all.before == EventPlace("5.1"))
        for kind in EventSelection.Kind.allCases {
            #expect(try Self.selection("kind=\(kind.rawValue)").kind == kind)
        }
    }

    @Test(
        "What is wrong is named, with what is taken",
        arguments: [
            ("kind=tasks", "kind is push, task or conditions, not \"tasks\"."),
            ("limit=0", "limit is a whole number from 1 to 1000, not \"0\"."),
            ("limit=1001", "limit is a whole number from 1 to 1000, not \"1001\"."), ("limit", "not \"\"."),
            ("before=1", "before is the next of the answer that is gone on with."),
            ("limit=1&limit=1", "limit may come only once."), ("limt=1", "limt is not a parameter (limit?)"),
        ]
    )
    func refused(query: String, message: String) throws {
        let error = try #require(throws: APIError.self) { _ = try Self.selection(query) }
        #expect(error.status == 400 && error.reason == "BadQuery")
        #expect(error.message.contains(message), "\(error.message)")
    }
}
