import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Another policy")
struct PolicyChangeTests {
    private static let topic = TopicIndex(rawValue: 0)

    /// Returns a rig whose devices have just launched and have a push that waits for the interval.
    private func rig(devices: Int, _ configuration: EngineConfiguration) throws -> EngineRig {
        let rig = EngineRig(configuration)
        for device in 0..<devices {
            let wake = try #require(rig.push(device, workerIsFree: true)?.wake)
            _ = rig.engine.report(.push(.newData), wake: wake)
            rig.push(device)
        }
        return rig
    }

    @Test("Devices that wait are launchable when the new policy says, whether that is earlier or later")
    func dueMoments() throws {
        let rig = try self.rig(devices: 10, EngineRig.open([(.launchInterval, 900)]))
        rig.advance(by: 100_000)
        #expect(rig.engine.readyCount(Self.topic) == 0)
        rig.engine.reconfigure(EngineRig.open([(.launchInterval, 101)]))
        rig.advance(by: 0)
        #expect(rig.engine.readyCount(Self.topic) == 0)
        #expect(rig.engine.nextDue == rig.instant + 1000)
        rig.advance(by: 1000)
        #expect(rig.engine.readyCount(Self.topic) == 10)
        // Devices that already waited for a slot wait for the interval again.
        rig.engine.reconfigure(EngineRig.open([(.launchInterval, 200)]))
        rig.advance(by: 0)
        #expect(rig.engine.readyCount(Self.topic) == 0)
        rig.advance(by: 99_000)
        #expect(rig.engine.readyCount(Self.topic) == 10)
    }

    @Test("A step examines a limited number of devices, and none launches against the new policy before its turn")
    func bounded() throws {
        let rig = try self.rig(devices: 1000, EngineRig.open([(.launchInterval, 1)]))
        rig.advance(by: 1000)
        #expect(rig.engine.readyCount(Self.topic) == 1000)
        rig.engine.reconfigure(EngineRig.open([(.launchInterval, 900)]))
        #expect(!rig.engine.advance(to: rig.instant, devicesMax: 100))
        #expect(rig.engine.readyCount(Self.topic) == 900)
        #expect(rig.engine.claim(Self.topic) == nil)
        let rest = EngineRig(EngineRig.open([(.launchInterval, 1)]))
        #expect(rest.engine.advance(to: rest.instant, devicesMax: 1))
        // The first step and the last.
        var steps = 2
        while !rig.engine.advance(to: rig.instant, devicesMax: 100) { steps += 1 }
        #expect(steps == 10)
        #expect(rig.engine.readyCount(Self.topic) == 0)
        #expect(rig.engine.totals.pending == 1000)
    }

    @Test("A device that may launch sooner under a new policy waits since the change")
    func waitsFromChange() throws {
        let rig = EngineRig(EngineRig.open([(.launchInterval, 900)]))
        for device in 1...2 {
            let wake = try #require(rig.push(device, workerIsFree: true)?.wake)
            #expect(rig.engine.report(.push(.newData), wake: wake) == .ended)
            rig.push(device)
            rig.advance(by: 100_000)
        }
        rig.engine.reconfigure(EngineRig.open([(.launchInterval, 150)]))
        rig.advance(by: 0)
        #expect(rig.engine.readyCount(Self.topic) == 1)
        #expect(rig.engine.oldestDueMilliseconds == 0)
        rig.pass(10_000)
        _ = rig.engine.advance(to: rig.instant, devicesMax: 10)
        #expect(rig.engine.oldestDueMilliseconds == 10_000)
        _ = try #require(rig.engine.claim(Self.topic))
        #expect(rig.engine.times.lateness.sum == 10_000)
    }

    @Test("A device that is queried before its turn is shown under the new policy")
    func asked() throws {
        let rig = try self.rig(devices: 10, EngineRig.open([(.launchInterval, 1)]))
        rig.advance(by: 1000)
        rig.engine.reconfigure(EngineRig.open([(.launchInterval, 900)]))
        let snapshot = rig.snapshot(9)
        #expect(snapshot.held == [])
        #expect(snapshot.parameters.launchInterval == 900_000)
    }

    @Test("Another critical battery holds and releases devices that wait")
    func battery() throws {
        let rig = try self.rig(devices: 1, EngineRig.open([(.launchInterval, 1)]))
        rig.conditions(0) { $0.batteryLevel = 0.3 }
        rig.advance(by: 1000)
        #expect(rig.engine.readyCount(Self.topic) == 1)
        rig.engine.reconfigure(EngineRig.open([(.launchInterval, 1), (.criticalBattery, 0.5)]))
        rig.advance(by: 0)
        #expect(rig.engine.readyCount(Self.topic) == 0)
        #expect(rig.engine.totals.held[.battery] == 1)
        rig.engine.reconfigure(EngineRig.open([(.launchInterval, 1)]))
        rig.advance(by: 0)
        #expect(rig.engine.readyCount(Self.topic) == 1)
        #expect(rig.engine.totals.held[.battery] == 0)
    }

    @Test("A topic's own policy changes only with it; a later topic has the new one")
    func topics() throws {
        let rig = EngineRig(EngineRig.open())
        rig.push(1, topic: 1)
        rig.push(2, topic: 2)
        var configuration = EngineRig.open()
        #expect(PolicyParameter.launchInterval.set(60, in: &configuration.policy))
        var own = configuration.policy
        #expect(PolicyParameter.launchInterval.set(7, in: &own))
        configuration.topicPolicies[EngineRig.topicName(2)] = own
        rig.engine.reconfigure(configuration)
        rig.push(3, topic: 3)
        let intervals = (1...3).map { rig.snapshot($0).parameters.launchInterval }
        #expect(intervals == [60_000, 7_000, 60_000])
    }

    @Test("Lowering the limit of devices below the current number keeps registered devices")
    func bounds() throws {
        let rig = try self.rig(devices: 5, EngineRig.open())
        var configuration = EngineRig.open()
        configuration.devicesMax = 3
        rig.engine.reconfigure(configuration)
        #expect(rig.push(4) != nil)
        #expect(rig.push(5) == nil)
    }
}

@Suite("The numbers of launch policies")
struct PolicyVersionsTests {
    private func policy(_ interval: Double) -> EngineConfiguration { EngineRig.open([(.launchInterval, interval)]) }

    @Test("Each time has the policy number that was in effect then, and the numbers are restored when read back")
    func numbers() throws {
        var versions = PolicyVersions()
        #expect(versions.current == nil)
        for (index, interval) in [900.0, 60, 60, 900].enumerated() {
            let isNew = versions.begin(self.policy(interval), at: Instant(milliseconds: Int64(index) * 1000))
            #expect(isNew == (index != 2))
        }
        let moments: [Int64] = [-1, 0, 999, 1000, 2999, 3000, 1_000_000]
        let numbers = moments.map { versions.number(at: Instant(milliseconds: $0)) }
        #expect(numbers == [nil, 1, 1, 2, 2, 3, 3])
        var buffer = ByteBuffer()
        versions.store(to: &buffer)
        #expect(PolicyVersions(stored: buffer.view) == versions)
        #expect(PolicyVersions(stored: buffer.view[0..<buffer.count - 1]) == nil)
    }

    @Test("Any changed parameter, of all topics or one, makes a new policy; a topic that repeats them does not")
    func fingerprints() throws {
        let base = EngineRig.open()
        for parameter in PolicyParameter.allCases {
            var versions = PolicyVersions()
            _ = versions.begin(base, at: .distantPast)
            var other = base
            let value = parameter == .criticalBattery ? 0.5 : 17
            try #require(parameter.set(value, in: &other.policy))
            var repeating = other
            repeating.topicPolicies["a"] = other.policy
            var differing = other
            differing.topicPolicies["a"] = base.policy
            let areNew = [other, repeating, differing].map { versions.begin($0, at: .distantPast) }
            #expect(areNew == [true, false, true], "\(parameter.rawValue)")
        }
    }

    @Test("A policy with default task parameters equals one without any")
    func upgrade() throws {
        func kept(_ configuration: EngineConfiguration) throws -> PolicyVersions {
            var versions = PolicyVersions()
            _ = versions.begin(configuration, at: Instant(milliseconds: 0))
            return versions
        }
        /// Returns the stored form from a gateway without background tasks: number, start and fingerprint.
        func former(_ fingerprint: UInt64) throws -> PolicyVersions {
            let number: [UInt8] = [1, 0, 0, 0]
            let since = [UInt8](repeating: 0, count: 8)
            let bytes = (0..<8).map { UInt8(truncatingIfNeeded: fingerprint >> (8 * $0)) }
            return try #require((number + since + bytes).withByteView { PolicyVersions(stored: $0) })
        }
        #expect(try kept(EngineConfiguration()) == former(0x55bf_2a2c_290d_e63e))
        var own = EngineConfiguration()
        own.topicPolicies["com.example.app"] = self.policy(300).policy
        #expect(try kept(own) == former(0xb5d8_f0c0_0aef_19d3))
    }

    @Test("Only a limited number of versions is kept, the newest ones")
    func bounded() {
        var versions = PolicyVersions()
        for number in 1...100 {
            _ = versions.begin(self.policy(Double(number)), at: Instant(milliseconds: Int64(number)))
        }
        #expect(versions.current?.number == 100)
        let oldest = Int64(100 - PolicyVersions.versionsMax + 1)
        #expect(versions.number(at: Instant(milliseconds: oldest)) == UInt32(oldest))
        #expect(versions.number(at: Instant(milliseconds: oldest - 1)) == nil)
    }
}
