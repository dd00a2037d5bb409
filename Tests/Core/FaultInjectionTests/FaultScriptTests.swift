import Testing
import Wire

@Suite("Fault rules")
struct FaultScriptTests {
    private static let device = String(repeating: "ab", count: 32)
    private static let other = String(repeating: "cd", count: 32)

    /// Returns a rule that resets with `code`, which shows the tests which rule fired.
    private static func rule(_ code: UInt32 = 1, _ change: (inout FaultRule) -> Void = { _ in }) -> FaultRule {
        var rule = FaultRule()
        rule.effect.outcome = .reset(code: code)
        change(&rule)
        return rule
    }

    private static func script(_ rules: [FaultRule]) -> FaultScript {
        var script = FaultScript()
        for rule in rules { _ = script.append(rule) }
        return script
    }

    private static func token(_ text: String) throws -> DeviceToken {
        try #require(text.withByteView { DeviceToken(hex: $0) })
    }

    /// Returns the code of the rule that fires for a push; nil if none does.
    private static func code(
        _ script: inout FaultScript,
        device: String = Self.device,
        topic: StaticString = "com.example.app",
        keyID: String? = "KEY",
        type: PushType? = .background,
        priority: Priority = .considerate
    ) throws -> UInt32? {
        let push = FaultCandidate(
            token: try Self.token(device),
            topic: ByteView(topic),
            keyID: keyID,
            type: type,
            priority: priority
        )
        let effect = script.pushReceived(push)
        if case .reset(let code)? = effect?.outcome { return code }
        #expect(effect == nil)
        return nil
    }

    /// Returns the ordinals, among the first twelve pushes, for which a rule with this occasion fires.
    private static func ordinals(_ change: (inout FaultRule) -> Void) throws -> [Int] {
        var script = Self.script([Self.rule(1, change)])
        var fired: [Int] = []
        for ordinal in 1...12 where try Self.code(&script) == 1 { fired.append(ordinal) }
        #expect(script.entries[0].matched == 12)
        #expect(script.entries[0].fired == UInt64(fired.count))
        return fired
    }

    @Test("A rule without a condition matches every push; each list must contain the push's value")
    func conditions() throws {
        let token = try Self.token(Self.device)
        let changes: [(String, (inout FaultCondition) -> Void, Bool)] = [
            ("none", { _ in }, true),
            ("token", { $0.tokens = [token] }, true),
            ("other token", { $0.tokens = [DeviceToken()] }, false),
            ("topic", { $0.topics = ["a.b", "com.example.app"] }, true),
            ("other topic", { $0.topics = ["com.example.app2"] }, false),
            ("key", { $0.keyIDs = ["KEY"] }, true),
            ("other key", { $0.keyIDs = ["KEY2"] }, false),
            ("type", { $0.types = [.background, .alert] }, true),
            ("other type", { $0.types = [.alert] }, false),
            ("priority", { $0.priorities = [.considerate] }, true),
            ("other priority", { $0.priorities = [.immediate, .passive] }, false),
            (
                "two that hold",
                {
                    $0.topics = ["com.example.app"]
                    $0.types = [.background]
                }, true
            ),
            (
                "one of two holds",
                {
                    $0.topics = ["com.example.app"]
                    $0.types = [.voip]
                }, false
            ),
        ]
        for (name, change, isExpected) in changes {
            var script = Self.script([Self.rule { change(&$0.condition) }])
            #expect(try (Self.code(&script) == 1) == isExpected, "\(name)")
            #expect(script.entries[0].matched == (isExpected ? 1 : 0), "\(name)")
        }
        var keyed = Self.script([Self.rule { $0.condition.keyIDs = ["KEY"] }])
        #expect(try Self.code(&keyed, keyID: nil) == nil)
        #expect(keyed.usesProviderKeys)
        var typed = Self.script([Self.rule { $0.condition.types = [.alert] }])
        #expect(try Self.code(&typed, type: nil) == nil)
        #expect(!typed.usesProviderKeys)
    }

    @Test("Ordinals are counted from one, over all pushes that the rule is about")
    func occasions() throws {
        #expect(try Self.ordinals { _ in } == Array(1...12))
        #expect(
            try Self.ordinals {
                $0.occasion.from = 4
                $0.occasion.to = 4
            } == [4]
        )
        #expect(try Self.ordinals { $0.occasion.to = 3 } == [1, 2, 3])
        #expect(try Self.ordinals { $0.occasion.from = 11 } == [11, 12])
        #expect(try Self.ordinals { $0.occasion.every = 5 } == [5, 10])
        #expect(
            try Self.ordinals {
                $0.occasion.every = 3
                $0.occasion.from = 4
                $0.occasion.to = 9
            } == [6, 9]
        )
        #expect(try Self.ordinals { $0.times = 2 } == [1, 2])
        #expect(
            try Self.ordinals {
                $0.times = 2
                $0.occasion.every = 2
            } == [2, 4]
        )
        #expect(try Self.ordinals { $0.occasion.probability = 0 } == [])
    }

    @Test("Chance follows the seed, with the configured probability")
    func probability() throws {
        func fate(_ seed: UInt64, lane: UInt64 = 0) -> [Bool] {
            var occasion = FaultOccasion()
            occasion.probability = 0.25
            occasion.seed = seed
            return (1...10_000).map { occasion.includes($0, lane: lane) }
        }
        #expect(fate(7) == fate(7))
        #expect(fate(7) != fate(8))
        #expect(fate(7) != fate(7, lane: 1))
        for seed: UInt64 in [0, 7, .max] {
            let share = fate(seed).filter { $0 }.count
            // Within four standard deviations.
            #expect((2327...2673).contains(share), "seed \(seed): \(share)")
        }
    }

    @Test("A rule per device has a separate count and draw for each")
    func perDevice() throws {
        var script = Self.script([
            Self.rule {
                $0.isPerDevice = true
                $0.occasion.from = 2
            }
        ])
        #expect(try Self.code(&script) == nil)
        #expect(try Self.code(&script, device: Self.other) == nil)
        #expect(try Self.code(&script) == 1)
        #expect(try Self.code(&script, device: Self.other) == 1)
        #expect(script.entries[0].matched == 4 && script.entries[0].fired == 2)
    }

    @Test("A rule counts a limited number of devices, and ignores others")
    func devicesAreBounded() throws {
        var script = Self.script([Self.rule { $0.isPerDevice = true }])
        for number in 0..<FaultScript.devicesMax {
            #expect(try Self.code(&script, device: Self.hex(number)) == 1)
        }
        #expect(try Self.code(&script, device: Self.other) == nil)
        #expect(try Self.code(&script, device: Self.hex(0)) == 1)
        #expect(script.entries[0].matched == UInt64(FaultScript.devicesMax + 1))
    }

    private static func hex(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    @Test("The first rule whose turn it is fires; every rule counts; a used-up one is passed over")
    func order() throws {
        var script = Self.script([
            Self.rule(1) { $0.occasion.every = 3 },
            Self.rule(2) {
                $0.occasion.every = 2
                $0.times = 2
            }, Self.rule(3),
        ])
        let fired = try (1...8).map { _ in try Self.code(&script) }
        // The sixth push is due for the first and the second rule. By the eighth, the second rule is spent.
        #expect(fired == [3, 2, 1, 2, 3, 1, 3, 3])
        #expect(script.entries.map(\.matched) == [8, 8, 8])
        #expect(script.entries.map(\.fired) == [2, 2, 4])
        #expect(script.entries.map(\.isSpent) == [false, true, false])
    }

    @Test("Resetting counters also resets used-up rules")
    func reset() throws {
        var script = Self.script([
            Self.rule(1) {
                $0.times = 1
                $0.isPerDevice = true
                $0.id = "once"
            }
        ])
        #expect(try [Self.code(&script), Self.code(&script)] == [1, nil])
        script.resetCounters()
        #expect(script.entries.map(\.id) == ["once"])
        #expect(script.entries.map(\.fired) == [0])
        #expect(try Self.code(&script) == 1)
    }

    @Test("Rules have their own names, or numbers that are never reused")
    func names() {
        var script = FaultScript()
        let first = [
            script.append(Self.rule()), script.append(Self.rule { $0.id = "2" }), script.append(Self.rule()),
            script.append(Self.rule { $0.id = "slow" }), script.append(Self.rule { $0.id = "slow" }),
        ]
        #expect(first == ["1", "2", "3", "slow", nil])
        let removed = [script.remove("3"), script.remove("3"), script.remove("slow")]
        #expect(removed == [true, false, true])
        let next = script.append(Self.rule())
        #expect(next == "4")
        #expect(script.entries.map(\.id) == ["1", "2", "4"])
        while script.entries.count < FaultScript.rulesMax { _ = script.append(Self.rule()) }
        let last = script.append(Self.rule())
        #expect(last == nil)
    }
}
