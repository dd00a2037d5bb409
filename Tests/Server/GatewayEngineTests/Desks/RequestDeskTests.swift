import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit

@Suite("What requests are answered", .timeLimit(.minutes(15)))
struct RequestDeskTests {
    /// What a request is answered before and after the store has failed.
    struct Case: CustomTestStringConvertible {
        let testDescription: String
        let ask: @Sendable (Requests) -> Void
        let before: String
        /// What was durable can be read, and cannot.
        let after: (readable: String, unreadable: String)
    }

    private static let refused = "503 ServiceUnavailable"

    static let cases: [Case] = [
        Case(
            testDescription: "a result",
            ask: { $0.report(1, EngineContract.unknownWake, .newData) },
            before: "404 UnknownWake",
            after: (refused, refused)
        ),
        Case(
            testDescription: "an extension",
            ask: { $0.extend(1, EngineContract.unknownWake) },
            before: "404 UnknownWake",
            after: (refused, refused)
        ),
        Case(
            testDescription: "the end of a stream",
            ask: { $0.drainStream(1, 9) },
            before: "404 UnknownStream",
            after: (refused, refused)
        ),
        Case(testDescription: "a device", ask: { $0.register(1, 1) }, before: "201", after: (refused, refused)),
        Case(
            testDescription: "a removal",
            ask: { $0.unregister(1, 9) },
            before: "404 UnknownDevice",
            after: (refused, refused)
        ),
        Case(
            testDescription: "conditions",
            ask: { $0.conditions(1, 9) { $0.charging = true } },
            before: "404 UnknownDevice",
            after: (refused, refused)
        ),
        Case(
            testDescription: "a launch",
            ask: { $0.simulateLaunch(1, 9) },
            before: "404 UnknownDevice",
            after: (refused, refused)
        ),
        Case(
            testDescription: "an expiration",
            ask: { $0.simulateExpiration(1, 9) },
            before: "404 UnknownDevice",
            after: (refused, refused)
        ),
        Case(
            testDescription: "a task",
            ask: { $0.submit(1, 9) },
            before: "404 UnknownDevice",
            after: (refused, refused)
        ),
        Case(
            testDescription: "finished transfers",
            ask: { $0.finish(1, 9, "s") },
            before: "404 UnknownDevice",
            after: (refused, refused)
        ),
        Case(
            testDescription: "progress",
            ask: { $0.progress(1, EngineContract.unknownWake, 1) },
            before: "404 UnknownWake",
            after: (refused, refused)
        ),
        Case(
            testDescription: "the tasks of a device",
            ask: { $0.listTasks(1, 9) },
            before: "404 UnknownDevice",
            after: ("404 UnknownDevice", refused)
        ),
        Case(
            testDescription: "an explanation",
            ask: { $0.explain(1, 9) },
            before: "404 UnknownDevice",
            after: ("404 UnknownDevice", refused)
        ),
        Case(testDescription: "statistics", ask: { $0.statistics(1) }, before: "200", after: ("200", refused)),
        Case(
            testDescription: "statistics of a topic",
            ask: { $0.statistics(1, topic: 5) },
            before: "404 UnknownTopic",
            after: ("404 UnknownTopic", refused)
        ),
        Case(testDescription: "readiness", ask: { $0.readiness(1) }, before: "200", after: (refused, refused)),
        Case(testDescription: "metrics", ask: { $0.metrics(1) }, before: "200", after: ("200", "200")),
    ]

    @Test("A request is answered once, after a failed store as its operation declares", arguments: cases)
    func answered(request: Case) {
        let rig = DeskRig()
        rig.perform { request.ask($0) }
        #expect(rig.answers() == [request.before])
        rig.perform(rig.failure(isReadable: true)) { request.ask($0) }
        #expect(rig.answers() == [request.after.readable])
        rig.perform(rig.failure(isReadable: false)) { request.ask($0) }
        #expect(rig.answers() == [request.after.unreadable])
    }

    @Test("A group holds one list of topics, and who comes later waits for the next")
    func topicLists() {
        let rig = DeskRig()
        rig.perform {
            $0.topics(1)
            $0.topics(2)
        }
        #expect(rig.answers().isEmpty && rig.requests.isLongListNext)
        let workspace = rig.workspace()
        rig.requests.writeNextLongList(workspace)
        #expect(!rig.requests.isLongListNext, "there is no room for the other one")
        rig.requests.writeNextLongList(workspace)
        #expect(rig.answers() == ["200"])
        #expect(rig.requests.isLongListNext)
        rig.requests.writeNextLongList(rig.workspace(rig.failure(isReadable: false)))
        #expect(rig.answers() == ["503 ServiceUnavailable"])
        rig.requests.writeNextLongList(workspace)
        #expect(rig.answers().isEmpty && !rig.requests.isLongListNext)
    }

    @Test("A stream begins before its first wake, and none begins in a shutdown or past a bound")
    func subscriptions() throws {
        var configuration = EngineRig.open()
        configuration.topicsMax = 1
        let rig = DeskRig(configuration)
        rig.perform { $0.push(1, 1) }
        _ = rig.heard()
        rig.perform { $0.subscribe(2) }
        let heard = rig.heard()
        guard heard.count == 2, case .subscribed(2) = heard[0], case .wake(let wake) = heard[1] else {
            throw RigFailure("heard were \(heard)")
        }
        #expect(wake.stream == 2)
        rig.perform { $0.subscribe(3, topic: 1) }
        #expect(rig.answers() == ["503 ServiceUnavailable"])
        #expect(rig.limits.met(rig.dispatcher).map(\.name) == ["topicsMax"])
        rig.requests.drain(rig.workspace())
        rig.perform {
            $0.subscribe(4)
            $0.readiness(5)
        }
        #expect(rig.answers() == ["503 Shutdown", "503 Shutdown"] && rig.requests.isDraining)
    }
}
