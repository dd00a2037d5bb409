import Engine
import Gateway
import Policy
import Testing
import Wire

@Suite("The query of a subscription", .timeLimit(.minutes(15)))
struct SubscriptionQueryTests {
    private func request(_ query: String) throws -> SubscriptionRequest {
        try query.withByteView { try SubscriptionQuery($0).request }
    }

    /// The reason that a query is refused for; nil when it is not.
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

    @Test("Without a query it is one slot for pushes alone")
    func defaults() throws {
        let request = try self.request("")
        #expect(request.slots == 1 && request.takesPushes && !request.takesTasks && !request.reportsConditions)
        #expect(request.devices.isEmpty && request.resources.isEmpty && request.label.isEmpty)
    }

    @Test("It names what it handles, has and hears of")
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

    @Test("The same name twice is refused as such")
    func duplicates() {
        #expect(self.refusal("task=a&task=b&task=a") == "DuplicateTask")
        #expect(self.refusal("session=a&session=a") == "DuplicateTask")
        #expect(self.refusal("task=a&session=a&task=a.*") == nil)
    }

    @Test(
        "What is no name, or comes too often, is refused",
        arguments: [
            "task=", "task=a%20b", "task=*", "task=.*", "task=a*", "session=", "resource=", "resource=a/b", "push=2",
            "push=", "conditions=yes", "push=1&push=1", "conditions=1&conditions=1", "tasks=a", "slots=0",
            "slots=1&slots=1", "push=0", "push=0&resource=gpu",
        ]
    )
    func faults(query: String) {
        #expect(self.refusal(query) == "BadQuery")
    }

    @Test("Tasks and sessions may be 64 each, resources eight")
    func bounds() {
        func query(_ parameter: String, _ count: Int) -> String {
            (0..<count).map { "\(parameter)=n\($0)" }.joined(separator: "&")
        }
        for (parameter, most) in [("task", 64), ("session", 64), ("resource", 8)] {
            #expect(self.refusal(query(parameter, most)) == nil, "\(parameter)")
            #expect(self.refusal(query(parameter, most + 1)) == "BadQuery", "\(parameter)")
        }
        #expect(self.refusal("task=" + String(repeating: "a", count: 255)) == nil)
        #expect(self.refusal("task=" + String(repeating: "a", count: 256)) == "BadQuery")
    }
}
