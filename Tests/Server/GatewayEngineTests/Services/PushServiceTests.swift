import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Answers to pushes and subscriptions", .timeLimit(.minutes(15)))
struct PushServiceTests {
    /// A cause of a refusal.
    struct Case: CustomTestStringConvertible {
        let testDescription: String
        let word: String
        /// The delay after which to send it again, in seconds; 0 if unknown.
        var retryAfterSeconds: UInt32 = 0
        var limit: String?
        /// The configuration of the case.
        var configure: @Sendable (inout EngineConfiguration) -> Void = { _ in }
        var prepare: @Sendable (ServiceRig) -> Void = { _ in }
        var topic = 0
    }

    static let cases: [Case] = [
        Case(testDescription: "unknown", word: "BadDeviceToken", configure: { $0.openRegistration = false }),
        Case(
            testDescription: "removed",
            word: "Unregistered",
            prepare: {
                $0.rig.register(1)
                $0.rig.engine.unregister($0.rig.index(1))
            }
        ),
        Case(
            testDescription: "of another topic",
            word: "DeviceTokenNotForTopic",
            prepare: { $0.rig.register(1) },
            topic: 1
        ),
        Case(
            testDescription: "one device too many",
            word: "TooManyRequests",
            retryAfterSeconds: 300,
            limit: "devicesMax",
            configure: { $0.devicesMax = 1 },
            prepare: { $0.rig.register(2) }
        ),
        Case(
            testDescription: "one device of its topic too many",
            word: "TooManyRequests",
            retryAfterSeconds: 300,
            limit: "devicesPerTopicMax",
            configure: { $0.devicesPerTopicMax = 1 },
            prepare: { $0.rig.register(2) }
        ),
        Case(
            testDescription: "one topic too many",
            word: "TooManyRequests",
            retryAfterSeconds: 300,
            limit: "topicsMax",
            configure: { $0.topicsMax = 1 },
            prepare: { $0.rig.register(2) },
            topic: 1
        ),
        Case(
            testDescription: "no memory for its topic",
            word: "TooManyRequests",
            retryAfterSeconds: 30,
            limit: "pendingTopicPercentMax",
            configure: { $0.pendingBytesPerTopicMax = 1 }
        ),
        Case(
            testDescription: "no memory",
            word: "ServiceUnavailable",
            retryAfterSeconds: 30,
            limit: "pendingBytesMax",
            configure: { $0.pendingBytesMax = 1 }
        ),
        Case(testDescription: "in a shutdown", word: "Shutdown", prepare: { $0.room.isDraining = true }),
    ]

    @Test("Every refusal has its reason and its retry time, and is counted", arguments: cases)
    func refused(refusal: Case) throws {
        var configuration = EngineRig.open()
        refusal.configure(&configuration)
        let rig = ServiceRig(configuration)
        refusal.prepare(rig)
        rig.perform { $0.push(1, 1, topic: refusal.topic) }
        let reply = try #require(rig.replies().first)
        #expect(reply.word == refusal.word && reply.apnsID == EngineRig.apnsID(1))
        #expect(reply.retryAfterSeconds == refusal.retryAfterSeconds)
        #expect(rig.records.rejections.total.reduce(0, +) == 1)
        #expect(rig.limits.met(rig.dispatcher).map(\.name) == (refusal.limit.map { [$0] } ?? []))
        if refusal.word == "Unregistered" { #expect(reply.timestamp == rig.rig.now + 10_000) }

        rig.perform { $0.push(2, 1, topic: refusal.topic, isDryRun: true) }
        #expect(rig.words() == [refusal.word])
        #expect(rig.records.rejections.total.reduce(0, +) == 1, "a dry run is not counted")
        #expect(rig.limits.met(rig.dispatcher).map(\.count).reduce(0, +) == (refusal.limit == nil ? 0 : 1))
    }

    @Test("No stream begins for a topic beyond the limit, which is counted")
    func subscriptions() {
        var configuration = EngineRig.open()
        configuration.topicsMax = 1
        let rig = ServiceRig(configuration)
        rig.perform { $0.push(1, 1) }
        _ = rig.heard()
        rig.perform { $0.subscribe(3, topic: 1) }
        #expect(rig.answers() == ["503 ServiceUnavailable"])
        #expect(rig.limits.met(rig.dispatcher).map(\.name) == ["topicsMax"])
    }

    @Test("An expiry is in wall clock time, and without one the policy's applies")
    func expirations() {
        let rig = ServiceRig()
        let wall = rig.rig.now / 1000 + 10
        rig.perform {
            $0.push(1, 1, expiration: wall)
            $0.push(2, 2, expiration: wall + 1)
            $0.push(3, 3, expiration: 0)
            $0.push(4, 4)
        }
        #expect(rig.words() == ["discarded", "scheduled", "discarded", "scheduled"])
    }

    @Test("A device's next eligible time is reported by the wall clock, rounded up to seconds")
    func eligibleAt() throws {
        let rig = ServiceRig(EngineRig.open([(.launchInterval, 60.5)]))
        rig.perform {
            $0.subscribe(1)
            $0.push(2, 1)
            $0.push(3, 1)
        }
        let replies = rig.replies()
        #expect(replies.map(\.word) == ["launched", "scheduled"])
        #expect(replies.map(\.eligibleAt) == [nil, rig.rig.now / 1000 + 10 + 61])
    }
}
