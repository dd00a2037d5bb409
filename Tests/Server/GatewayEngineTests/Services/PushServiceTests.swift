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
        var prepare: @Sendable (Requests) -> Void = { _ in }
        var topic = 0
    }

    static let cases: [Case] = [
        Case(testDescription: "unknown", word: "BadDeviceToken", configure: { $0.openRegistration = false }),
        Case(
            testDescription: "removed",
            word: "Unregistered",
            prepare: {
                $0.register(900, 1)
                $0.unregister(901, 1)
            }
        ),
        Case(
            testDescription: "of another topic",
            word: "DeviceTokenNotForTopic",
            prepare: { $0.register(900, 1) },
            topic: 1
        ),
        Case(
            testDescription: "one device too many",
            word: "TooManyRequests",
            retryAfterSeconds: 300,
            limit: "devicesMax",
            configure: { $0.devicesMax = 1 },
            prepare: { $0.register(900, 2) }
        ),
        Case(
            testDescription: "one device of its topic too many",
            word: "TooManyRequests",
            retryAfterSeconds: 300,
            limit: "devicesPerTopicMax",
            configure: { $0.devicesPerTopicMax = 1 },
            prepare: { $0.register(900, 2) }
        ),
        Case(
            testDescription: "one topic too many",
            word: "TooManyRequests",
            retryAfterSeconds: 300,
            limit: "topicsMax",
            configure: { $0.topicsMax = 1 },
            prepare: { $0.register(900, 2) },
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
        Case(testDescription: "in a shutdown", word: "Shutdown", prepare: { $0.drain() }),
    ]

    /// Returns an engine without a store.
    private func contract(_ change: (inout EngineConfiguration) -> Void = { _ in }) throws -> EngineContract {
        let contract = try EngineContract(.all[0], change)
        contract.setWallClockAhead()
        return contract
    }

    /// Returns the limits that were reached, with their counts.
    private func limits(_ contract: EngineContract) throws -> [String] {
        let statistics = try JSONReader.read(contract.text(contract.question { $0.statistics($1) }))
        return try #require(statistics["limits"]).members.map { "\($0.name) \($0.value.described)" }
    }

    @Test("Every refusal has its reason and its retry time, and is counted", arguments: cases)
    func refused(refusal: Case) throws {
        let contract = try self.contract(refusal.configure)
        contract.ask(refusal.prepare)
        let limits = refusal.limit.map { ["\($0) 1"] } ?? []
        contract.ask { $0.push(1, 1, topic: refusal.topic) }
        let reply = try #require(contract.reply(1))
        #expect(reply.word == refusal.word && reply.apnsID == EngineRig.apnsID(1))
        #expect(reply.retryAfterSeconds == refusal.retryAfterSeconds)
        #expect(try contract.statistics().rejected.reduce(0, +) == 1)
        #expect(try self.limits(contract) == limits)
        if refusal.word == "Unregistered" { #expect(reply.timestamp == contract.wall) }

        contract.ask { $0.push(2, 1, topic: refusal.topic, isDryRun: true) }
        #expect(contract.word(2) == refusal.word)
        #expect(try contract.statistics().rejected.reduce(0, +) == 1, "a dry run is not counted")
        #expect(try self.limits(contract) == limits)
    }

    @Test("No stream begins for a topic beyond the limit, which is counted")
    func subscriptions() throws {
        let contract = try self.contract { $0.topicsMax = 1 }
        contract.ask { $0.push(1, 1) }
        contract.ask { $0.subscribe(3, topic: 1) }
        #expect(contract.answer(3) == "503 ServiceUnavailable" && contract.answerCount(3) == 1)
        #expect(try self.limits(contract) == ["topicsMax 1"])
    }

    @Test("An expiry is in wall clock time, and without one the policy's applies")
    func expirations() throws {
        let contract = try self.contract()
        let wall = contract.wall / 1000
        contract.ask {
            $0.push(1, 1, expiration: wall)
            $0.push(2, 2, expiration: wall + 1)
            $0.push(3, 3, expiration: 0)
            $0.push(4, 4)
        }
        #expect((1...4).map { contract.word($0) } == ["discarded", "scheduled", "discarded", "scheduled"])
    }

    @Test("A device's next eligible time is reported by the wall clock, rounded up to seconds")
    func eligibleAt() throws {
        let contract = try self.contract { _ = PolicyParameter.launchInterval.set(60.5, in: &$0.policy) }
        contract.ask {
            $0.subscribe(1)
            $0.push(2, 1)
            $0.push(3, 1)
        }
        #expect((2...3).map { contract.word($0) } == ["launched", "scheduled"])
        #expect((2...3).map { contract.reply($0)?.eligibleAt } == [nil, contract.wall / 1000 + 61])
    }
}
