import Policy
import Testing

@Suite("How often refreshes launch that are asked for all the time", .timeLimit(.minutes(15)))
struct TaskSpacingTests {
    /// How often a refresh launches that is submitted every minute, or replaces the one that waits.
    private static func launches(minutes: Int, _ more: [String] = []) throws -> Int {
        let submissions = (0..<minutes).map { minute in
            #"{"t": \#(minute * 60), "device": "a", "submit": {"identifier": "r", "kind": "appRefresh"}}"#
        }
        var count = 0
        let headers = [#"{"until": \#(minutes * 60)}"#]
        try Simulator.run(trace: headers + more + submissions, overrides: []) { line in
            if line.contains(#""event":"launch""#) { count += 1 }
        }
        return count
    }

    @Test("Every minute for an hour is five launches at most")
    func hour() throws {
        let launches = try Self.launches(minutes: 60)
        #expect((4...5).contains(launches), "\(launches)")
    }

    @Test("A device that saves power launches half as often over a day")
    func lowPower() throws {
        let saving = #"{"t": 0, "device": "a", "conditions": {"lowPowerMode": true}}"#
        let (ordinary, saved) = (try Self.launches(minutes: 1440), try Self.launches(minutes: 1440, [saving]))
        #expect((95...97).contains(ordinary) && (47...49).contains(saved), "\(ordinary), \(saved)")
    }
}
