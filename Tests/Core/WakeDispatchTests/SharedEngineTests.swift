import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("An engine that shares its store", .timeLimit(.minutes(15)))
struct SharedEngineTests {
    private static let seedCount = 60

    private func run(
        _ seed: UInt64,
        _ loading: SharedComparison.Loading,
        _ spoil: @escaping (SharedDeviceChange) -> SharedDeviceChange = { $0 }
    ) throws -> SharedComparison {
        var generator = SeededGenerator(seed: seed &* 31)
        let configuration = SharedComparison.configuration(&generator)
        let comparison = try SharedComparison(configuration, loading, mayFail: seed.isMultiple(of: 3), seed: seed)
        comparison.shared.spoil = spoil
        try comparison.begin()
        for _ in 0..<50 {
            try comparison.goOn()
            if !comparison.differences.isEmpty { break }
        }
        return comparison
    }

    @Test(
        "It answers, tells, counts, remembers and shows what one does that keeps all devices",
        arguments: SharedComparison.Loading.allCases
    )
    func same(_ loading: SharedComparison.Loading) throws {
        var (wakes, failures) = (0, 0)
        for seed in 1...UInt64(Self.seedCount) {
            let comparison = try self.run(seed, loading)
            let difference = comparison.differences.first ?? "none"
            #expect(comparison.differences.isEmpty, "seed \(seed): \(difference)")
            guard comparison.differences.isEmpty else { return }
            wakes += comparison.wakes.count
            failures += comparison.shared.failureCount
        }
        #expect(wakes > 300)
        #expect(failures > 300)
    }

    /// What a store, or an engine, might get wrong.
    enum Fault: CaseIterable {
        case due, ready, derived, ended

        func spoil(_ change: SharedDeviceChange) -> SharedDeviceChange {
            let device = change.device
            return SharedDeviceChange(
                device: SharedDevice(
                    token: device.token,
                    record: device.record,
                    tasks: device.tasks,
                    derived: self == .derived ? Self.miscounted(device.derived) : device.derived
                ),
                topic: change.topic,
                isNew: change.isNew,
                due: self == .due && !change.isNew ? .unchanged : change.due,
                ready: self == .ready && !change.isNew ? nil : change.ready,
                launched: change.launched,
                ended: self == .ended ? [] : change.ended
            )
        }

        /// With another hold than the books have counted, where there is one behind a digest and a moment.
        private static func miscounted(_ bytes: [UInt8]) -> [UInt8] {
            var bytes = bytes
            if bytes.count > 18, bytes[1] & 0x98 == 0x98 { bytes[18] = bytes[18] == 5 ? 6 : 5 }
            return bytes
        }
    }

    @Test("A store that loses something is found out", arguments: Fault.allCases)
    func faults(_ fault: Fault) throws {
        let isFound = try (1...UInt64(Self.seedCount)).contains { seed in
            do {
                return try !self.run(seed, .needed, fault.spoil).differences.isEmpty
            } catch is StoreError {
                return true
            }
        }
        #expect(isFound)
    }
}
