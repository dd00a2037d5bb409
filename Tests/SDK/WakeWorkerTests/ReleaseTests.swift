import HTTPClient
import Testing
import WakeGateTestKit
import WakeWorker

@Suite("Wakes that a worker gives back", .serialized, .timeLimit(.minutes(15)))
struct ReleaseTests {
    @Test("If a gateway accepts no releases, the handler has failed")
    func earlierGateway() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        let run = Task { try await worker.run { _ in throw WakeRelease("no interpreter") } }
        try await gateway.request("/wakes")
        try await gateway.answer("POST", "/release", 404, #"{"reason":"BadPath","message":"There is no such path."}"#)
        try await gateway.wake("push", "push", #""payload":{}"#)
        try await gateway.request("/v1/wakes/push/release")
        #expect(try await gateway.request("/v1/wakes/push").body == #"{"result":"failed"}"#)
        try await gateway.end(worker, run)
    }

    @Test("Wakes are given back with their reasons; after three in a row a worker subscribes again without an event")
    func renewal() async throws {
        let gateway = try await TaskGateway()
        let worker = try gateway.worker()
        try worker.backgroundTask(.processing("com.a")) { _ in throw WakeRelease("no model") }
        let run = Task { try await worker.run { _ in throw WakeRelease("no \"interpreter\"") } }
        let first = try await gateway.request("/wakes").path
        func release(_ wake: String, isTask: Bool = false) async throws {
            let members = isTask ? #""task":"com.a""# : #""payload":{}"#
            try await gateway.wake(wake, isTask ? "processing" : "push", members)
            let reason = isTask ? "no model" : #"no \"interpreter\""#
            #expect(try await gateway.request("/v1/wakes/\(wake)/release").body == #"{"reason":"\#(reason)"}"#)
        }
        try await release("a")
        try await release("b", isTask: true)
        try await release("c")
        #expect(try await gateway.request("/wakes").path == first)
        // The gateway can drain an open stream.
        try await release("d")
        var (subscriptions, released): (Int, [String]) = (0, [])
        for event in try await gateway.events(of: worker, run) {
            switch event {
            case .subscribed: subscriptions += 1
            case .released(let wake, let reason): released.append("\(wake) \(reason)")
            case .started, .stopping: break
            default: Issue.record("\(event)")
            }
        }
        #expect(subscriptions == 1)
        let reason = #"no "interpreter""#
        // The answers to two releases may be read in any order.
        #expect(released.sorted() == ["a \(reason)", "b no model", "c \(reason)", "d \(reason)"])
    }

    @Test("The wait begins with the third release in a row, grows, and starts over after an answer")
    func waits() throws {
        var generator = SeededGenerator(seed: 3)
        var releases = ReleaseStateMachine(backoff: Backoff(firstMilliseconds: 1000, lastMilliseconds: 4000))
        for longest: Int64 in [1000, 2000, 4000, 4000, 4000] {
            for _ in 0..<2 {
                releases.released(now: 10, using: &generator)
                #expect(releases.renewAt == nil)
            }
            releases.released(now: 10, using: &generator)
            let moment = try #require(releases.renewAt)
            #expect((longest / 2...longest).contains(moment - 10))
            releases.released(now: 20, using: &generator)
            #expect(releases.renewAt == moment, "a fourth one moves nothing")
            releases.streamEnded()
            #expect(releases.renewAt == nil)
        }
        for _ in 0..<3 { releases.released(now: 0, using: &generator) }
        releases.answered()
        #expect(releases.renewAt == nil)
        for _ in 0..<3 { releases.released(now: 0, using: &generator) }
        #expect(try #require(releases.renewAt) <= 1000)
    }

    @Test(
        "A long reason is cut between two characters",
        arguments: [("a", 256), ("é", 256), ("\u{1F469}\u{200D}\u{1F680}", 253)]
    )
    func longReason(character: String, bytes: Int) {
        #expect(WakeRelease(String(repeating: character, count: 300)).reason.utf8.count == bytes)
        #expect(WakeRelease("short").reason == "short")
    }
}
