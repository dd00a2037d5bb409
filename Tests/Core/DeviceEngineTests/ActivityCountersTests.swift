import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Counters that gateways share", .timeLimit(.minutes(15)))
struct StoredActivityCountersTests {
    /// Counters with distinct nonzero values: those of a stored form with every code that is known.
    private static let counters: ActivityCounters = {
        var bytes: [UInt8] = [1]
        for code in UInt16(1)..<0x2000 {
            let count = code.isMultiple(of: 3) ? -Int64(code) : Int64(code) << 40
            let entry =
                (0..<2).map { UInt8(truncatingIfNeeded: code >> ($0 * 8)) }
                + (0..<8).map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
            if ([1] + entry).withByteView({ ActivityCounters(stored: $0) }) != nil { bytes += entry }
        }
        guard let counters = bytes.withByteView({ ActivityCounters(stored: $0) }) else {
            preconditionFailure("each of the codes was decoded alone")
        }
        return counters
    }()

    /// Returns every counter by its property path, including properties that this test does not know.
    private static func leaves(_ value: Any, _ path: String = "") -> [String: Int64] {
        if let count = value as? Int64 { return [path: count] }
        if let counts = value as? any CountList { return counts.leaves(path) }
        return Mirror(reflecting: value).children.reduce(into: [:]) { leaves, child in
            leaves.merge(Self.leaves(child.value, path + "." + (child.label ?? ""))) { first, _ in first }
        }
    }

    private func stored(_ counters: ActivityCounters) -> [UInt8] {
        var buffer = ByteBuffer()
        counters.store(to: &buffer)
        return buffer.view.array
    }

    @Test("Every counter is restored with its stored value, and is included in sums and differences")
    func everyCount() throws {
        let leaves = Self.leaves(Self.counters)
        #expect(leaves.count > 90)
        func absent<Case: CaseIterable & Hashable>(_ path: String, _ possible: [Case]) -> [String] {
            Set(Case.allCases).subtracting(possible).map { "\(path).\($0)" }
        }
        let impossible =
            absent(".held", Hold.ofPushes) + absent(".requests.held", Hold.ofTasks)
            + absent(".discarded", DiscardReason.ofPushes) + absent(".requests.discarded", DiscardReason.ofTasks)
            + absent(".sessions.discarded", DiscardReason.ofTasks)
        for (path, count) in leaves {
            #expect((count != 0) != impossible.contains(path), "\(path): has it a code of its own, and is it added?")
        }
        let bytes = self.stored(Self.counters)
        let restored = try #require(bytes.withByteView { ActivityCounters(stored: $0) })
        #expect(Self.leaves(restored) == leaves)
        var sum = Self.counters
        sum += Self.counters
        #expect(Self.leaves(sum) == leaves.mapValues { $0 * 2 })
        #expect(Self.leaves(sum - Self.counters) == leaves)
        #expect(Self.leaves(Self.counters - sum) == leaves.mapValues { -$0 })
    }

    @Test("Empty counters take one byte; truncated counters and unknown ones are refused")
    func unreadable() {
        let empty = self.stored(ActivityCounters())
        #expect(empty.count == 1)
        #expect(empty.withByteView { ActivityCounters(stored: $0) } == ActivityCounters())
        let bytes = self.stored(Self.counters)
        for count in 0..<bytes.count where count % 10 != 1 {
            #expect(Array(bytes[..<count]).withByteView { ActivityCounters(stored: $0) } == nil)
        }
        let unknown = empty + [0xFF, 0xFF, 1, 0, 0, 0, 0, 0, 0, 0]
        #expect(unknown.withByteView { ActivityCounters(stored: $0) } == nil)
        #expect((bytes + bytes[1..<11]).withByteView { ActivityCounters(stored: $0) } == nil)
        #expect(([2] + bytes[1...]).withByteView { ActivityCounters(stored: $0) } == nil)
    }
}

private protocol CountList {
    func leaves(_ path: String) -> [String: Int64]
}

extension PerCase: CountList {
    fileprivate func leaves(_ path: String) -> [String: Int64] {
        Case.allCases.reduce(into: [:]) { $0["\(path).\($1)"] = self[$1] }
    }
}
