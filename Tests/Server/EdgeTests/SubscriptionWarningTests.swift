import Engine
import Gateway
import HTTPClient
import Policy
import ServiceManager
import Testing

@Suite("Warnings for subscribing workers", .timeLimit(.minutes(15)))
struct SubscriptionWarningTests {
    private static let wakes = "/v1/topics/\(ServedLoop.topic)/wakes?push=0"

    private func warnings(_ loop: ServedLoop, _ query: String) throws -> [String] {
        let stream = try loop.open("\(Self.wakes)&\(query)")
        let head = try #require(loop.answers[stream]?.head)
        #expect(head.status == 200 && head.header("wakegate-stream") != nil)
        return head.headers.filter { $0.name == "wakegate-warning" }.map(\.value)
    }

    @Test("A subscription for an identifier that its topic does not permit is accepted with a warning, in the log too")
    func notPermitted() throws {
        let loop = try ServedLoop {
            $0.permittedTasks[ServedLoop.topic] = ["a.b", "c.*"].map { IdentifierPattern($0) }
        }
        #expect(try self.warnings(loop, "task=a.b&task=a.*&task=c.*&task=c.d.*&session=x") == [])
        #expect(loop.logged(.taskNotPermitted) == [])
        let problem = "task-not-permitted; com.example.mine does not permit x, a.c.*, so no such task can be submitted"
        let remedy = "add them to topics.com.example.mine.tasks of the gateway's configuration"
        #expect(try self.warnings(loop, "name=w&task=x&task=a.b&task=a.c.*") == ["\(problem); \(remedy)"])
        let fields = #"identifiers="x, a.c.*" remedy="\#(remedy)" topic=com.example.mine worker=w"#
        #expect(loop.logged(.taskNotPermitted) == ["warning taskNotPermitted \(fields)"])
        let many = (0..<64).map { "task=t.\($0)" }.joined(separator: "&")
        let long = try #require(try self.warnings(loop, many).first)
        #expect(long.contains(" t.6, t.7 and 56 more, so "), "\(long)")
    }

    @Test("A gateway that permits everything says so once, to the first worker that takes tasks")
    func everythingPermitted() throws {
        let loop = try ServedLoop { $0.permittedTasks = .all }
        #expect(try self.warnings(loop, "session=x") == [])
        let problem = "this gateway permits every identifier, and wakegate serve would not permit a.*"
        let remedy = "list them in topics.com.example.mine.tasks of its configuration before production"
        #expect(try self.warnings(loop, "task=a.*") == ["every-task-permitted; \(problem); \(remedy)"])
        #expect(try self.warnings(loop, "task=a.*") == [] && self.warnings(loop, "task=b") == [])
        #expect(loop.logged(.everyTaskPermitted).count == 1)
        #expect(loop.logged(.everyTaskPermitted).allSatisfy { $0.hasPrefix("info everyTaskPermitted identifiers=") })
    }
}
