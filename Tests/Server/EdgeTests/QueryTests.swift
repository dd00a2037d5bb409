import Engine
import Gateway
import Policy
import Storage
import Testing
import Wire

@Suite("The query of events", .timeLimit(.minutes(15)))
struct EventFilterTests {
    private static func filter(_ query: String) throws -> EventFilter {
        try query.withByteView { view in try EventFilter(query: view) }
    }

    @Test("Each parameter is accepted once, and an empty query selects everything")
    func taken() throws {
        #expect(try Self.filter("") == EventFilter())
        let token = String(repeating: "AB", count: 32)
        let all = try Self.filter("outcome=refused&device=\(token)&topic=com.example.app")
        #expect(all.topic == "com.example.app" && all.outcomes == ["refused"])
        #expect(all.device == token.lowercased(), "as events spell it")
        for outcome in ["push", "coalesced", "no-wake", "newData", "lost", "expired", "BadDeviceToken"] {
            #expect(try Self.filter("outcome=\(outcome)").outcomes == [outcome])
        }
        let several: Set = ["lost", "expired", "BadTopic"]
        for comma in [",", "%2C", "%2c"] {
            let query = "outcome=lost&outcome=expired\(comma)BadTopic"
            #expect(try Self.filter(query).outcomes == several)
        }
    }

    @Test(
        "A wrong parameter is named, with the accepted values",
        arguments: [
            ("outcome=colesced", "(coalesced?)"), ("outcome=", "not \"\""), ("outcome=lost,", "not \"\""),
            ("outcome=lost&outcome=colesced", "(coalesced?)"),
            ("outcome=nosuchword", "The words are push, refused, launched,"),
            ("topic=a&topic=b", "topic may come only once."), ("topik=a", "topik is not a parameter (topic?)"),
        ]
    )
    func refused(query: String, message: String) throws {
        let error = try #require(throws: APIError.self) { _ = try Self.filter(query) }
        #expect(error.status == 400 && error.reason == "BadQuery")
        #expect(error.message.contains(message), "\(error.message)")
    }

    @Test("An invalid topic or token is refused with its own reason")
    func none() throws {
        #expect(try #require(throws: APIError.self) { _ = try Self.filter("topic=%20") }.reason == "BadTopic")
        #expect(try #require(throws: APIError.self) { _ = try Self.filter("device=1") }.reason == "BadDeviceToken")
    }
}

@Suite("The query of a device's events", .timeLimit(.minutes(15)))
struct EventQueryTests {
    private static func selection(_ query: String) throws -> EventSelection {
        try query.withByteView { view in try EventSelection(query: view) }
    }

    @Test("Each parameter is accepted once, in any order, and the limit has a default")
    func taken() throws {
        let none = try Self.selection("")
        #expect(none.kind == nil && none.limit == EventSelection.limitByDefault && none.before == nil)
        let all = try Self.selection("before=5.1&limit=1000&kind=task")
        #expect(all.kind == .task && all.limit == 1000 && all.before == HistoryCursor("5.1"))
        let period = try Self.selection("since=5&until=6")
        #expect(period.since == 5 && period.until == 6)
        for kind in EventSelection.Kind.allCases {
            #expect(try Self.selection("kind=\(kind.rawValue)").kind == kind)
        }
    }

    @Test(
        "A wrong parameter is named, with the accepted values",
        arguments: [
            ("kind=tasks", "kind is push, task, conditions or subscription, not \"tasks\"."),
            ("limit=0", "limit is a whole number from 1 to 1000, not \"0\"."),
            ("limit=1001", "limit is a whole number from 1 to 1000, not \"1001\"."), ("limit", "not \"\"."),
            ("since=6&until=6", "until must be later than since, not 6."),
            ("before=1", "before must be the next value of the previous page."),
            ("limit=1&limit=1", "limit may come only once."), ("limt=1", "limt is not a parameter (limit?)"),
        ]
    )
    func refused(query: String, message: String) throws {
        let error = try #require(throws: APIError.self) { _ = try Self.selection(query) }
        #expect(error.status == 400 && error.reason == "BadQuery")
        #expect(error.message.contains(message), "\(error.message)")
    }
}

@Suite("The query of a subscription", .timeLimit(.minutes(15)))
struct SubscriptionQueryTests {
    private func request(_ query: String) throws -> SubscriptionRequest {
        try query.withByteView { try SubscriptionQuery($0).request }
    }

    /// Returns the reason for which a query is refused; nil if it is accepted.
    private func refusal(_ query: String) -> String? {
        query.withByteView { query in
            do throws(APIError) {
                _ = try SubscriptionQuery(query)
                return nil
            } catch {
                return error.reason
            }
        }
    }

    @Test("An empty query means one slot for pushes only")
    func defaults() throws {
        let request = try self.request("")
        #expect(request.slots == 1 && request.takesPushes && !request.takesTasks && !request.reportsConditions)
        #expect(request.devices.isEmpty && request.resources.isEmpty && request.label.isEmpty)
    }

    @Test("A query names tasks, sessions, resources and conditions")
    func names() throws {
        let request = try self.request(
            "task=a.b&task=a.%2A&session=s&resource=npu&resource=gpu&push=0&conditions=1&slots=3&name=my%20worker"
        )
        #expect(request.tasks == [IdentifierPattern("a.b"), IdentifierPattern("a.*")])
        #expect(request.sessions == [IdentifierPattern("s")])
        #expect(request.resources == ["gpu", "npu"])
        #expect(!request.takesPushes && request.reportsConditions && request.slots == 3 && request.label == "my worker")
        #expect(try self.request("push=1&conditions=0").takesPushes)
        #expect(try self.request("push=0&conditions=1").takesTasks == false)
    }

    @Test("A repeated name is refused as repeated")
    func duplicates() {
        #expect(self.refusal("task=a&task=b&task=a") == "DuplicateTask")
        #expect(self.refusal("session=a&session=a") == "DuplicateTask")
        #expect(self.refusal("task=a&session=a&task=a.*") == nil)
    }

    @Test(
        "An invalid or repeated parameter is refused",
        arguments: [
            "task=", "task=a%20b", "task=*", "task=.*", "task=a*", "session=", "resource=", "resource=a/b", "push=2",
            "push=", "conditions=yes", "push=1&push=1", "conditions=1&conditions=1", "tasks=a", "slots=0",
            "slots=1&slots=1", "push=0", "push=0&resource=gpu",
        ]
    )
    func faults(query: String) {
        #expect(self.refusal(query) == "BadQuery")
    }

    @Test("A query may name up to 64 tasks, 64 sessions and eight resources")
    func bounds() {
        func query(_ parameter: String, _ count: Int) -> String {
            (0..<count).map { "\(parameter)=n\($0)" }.joined(separator: "&")
        }
        for (parameter, maximum) in [("task", 64), ("session", 64), ("resource", 8)] {
            #expect(self.refusal(query(parameter, maximum)) == nil, "\(parameter)")
            #expect(self.refusal(query(parameter, maximum + 1)) == "BadQuery", "\(parameter)")
        }
        #expect(self.refusal("task=" + String(repeating: "a", count: 255)) == nil)
        #expect(self.refusal("task=" + String(repeating: "a", count: 256)) == "BadQuery")
    }
}
