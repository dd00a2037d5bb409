import Foundation
import Policy
import Testing

@Suite("The worked examples of the rules", .timeLimit(.minutes(15)))
struct VectorTests {
    @Test("All the examples are here")
    func found() {
        #expect(Vector.names(.pushes).count >= 49)
        #expect(Vector.names(.backgroundTasks).count >= 51)
    }

    @Test("Each example of pushes has exactly its outcome", arguments: Vector.names(.pushes))
    func pushes(_ name: String) throws {
        try Self.expectOutcome(of: Vector(name, in: .pushes))
    }

    @Test("Each example of background tasks has exactly its outcome", arguments: Vector.names(.backgroundTasks))
    func backgroundTasks(_ name: String) throws {
        try Self.expectOutcome(of: Vector(name, in: .backgroundTasks))
    }

    private static func expectOutcome(of vector: Vector) throws {
        var lines: [String] = []
        try Simulator.run(trace: vector.trace) { lines.append($0) }
        let actual = try lines.map(Vector.object)
        let expected = try vector.outcome.map(Vector.object)
        try Self.expectOrdered(actual)
        #expect(actual.count == expected.count)
        let devices = Set((actual + expected).compactMap { $0["device"] as? String })
        #expect(!devices.isEmpty)
        for device in devices.sorted() {
            let actual = actual.filter { $0["device"] as? String == device }
            let expected = expected.filter { $0["device"] as? String == device }
            #expect(actual.count == expected.count, "device \(device)")
            for (index, pair) in zip(actual, expected).enumerated() {
                #expect(pair.0 == pair.1, "device \(device), outcome \(index + 1)")
            }
        }
        #expect(try Self.counters(actual.last) == Self.counters(expected.last))
    }

    /// The summary's counters; all but two may be left out at zero.
    private static func counters(_ line: NSDictionary?) throws -> [String: Int] {
        let counters = try #require(line?["summary"] as? [String: Int])
        #expect(counters["pending"] != nil && counters["inFlight"] != nil)
        return counters.filter { $0.value != 0 }
    }

    private static func expectOrdered(_ lines: [NSDictionary]) throws {
        let times = try lines.dropLast().map { try #require($0["t"] as? Double) }
        #expect(times == times.sorted())
        #expect(lines.last?["summary"] != nil)
    }
}
