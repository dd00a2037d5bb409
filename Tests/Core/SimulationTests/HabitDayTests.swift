import Policy
import Testing
import WakeGateTestKit

/// A day of twenty devices after a week of use at the same hours. Each handler requests the next refresh.
private struct HabitDay {
    private static let hour = 3600
    private static let day = 24 * hour
    private static let begin = 7 * day
    private static let refresh = "com.example.app.refresh"

    private var simulator: Simulator
    /// The times of each device's launches, in seconds.
    private var launches: [String: [Int]] = [:]
    /// For each use of the day, the seconds since the last refresh before it, sorted.
    private(set) var leads: [Int] = []

    init(seed: UInt64, overrides: [(String, Double)]) throws {
        self.simulator = try Simulator(overrides: overrides)
        var random = SeededGenerator(seed: seed)
        var uses: [String: [Int]] = [:]
        var gaps: [String: Int] = [:]
        var events: [(moment: Int, device: String, event: String)] = []
        for name in (0..<20).map({ "d\($0)" }) {
            let hours = [6...9, 11...14, 16...22].map { random.number(in: $0) * Self.hour }
            for day in 0..<8 {
                for moment in hours.map({ day * Self.day + $0 + random.number(below: Self.hour) }) {
                    events.append((moment, name, #""conditions":{"appState":"active"}"#))
                    events.append((moment + 300, name, #""conditions":{"appState":"background"}"#))
                    if day == 7 { uses[name, default: []].append(moment) }
                }
            }
            gaps[name] = random.pick([2, 3, 4, 6]) * Self.hour
            let first = Self.begin - random.number(in: 4...6) * Self.hour
            events.append((first, name, Self.request(earliest: first)))
        }
        // An event for each minute of the day and of the hours before it, so that handlers notice launches promptly.
        for moment in stride(from: Self.begin - 7 * Self.hour, to: Self.begin + Self.day, by: 60) {
            events.append((moment, "d0", #""cancel":"-""#))
        }
        for (moment, device, event) in events.sorted(by: { ($0.moment, $0.device) < ($1.moment, $1.device) }) {
            for launched in try self.take(moment, device, event) {
                let earliest = moment + gaps[launched, default: 0]
                _ = try self.take(moment, launched, Self.request(earliest: earliest))
            }
        }
        for (name, moments) in uses {
            let refreshes = self.launches[name, default: []]
            self.leads += moments.map { use in use - (refreshes.last { $0 < use } ?? 0) }
        }
        self.leads.sort()
    }

    private static func request(earliest: Int) -> String {
        #""submit":{"identifier":"\#(Self.refresh)","kind":"appRefresh","earliestBegin":\#(earliest)}"#
    }

    /// Takes one event, and returns the devices that launched before it.
    private mutating func take(_ moment: Int, _ device: String, _ event: String) throws -> [String] {
        var launched: [String] = []
        var seen = self.launches
        try self.simulator.take(#"{"t":\#(moment),"device":"\#(device)",\#(event)}"#) { line in
            guard case .task(let line) = line, case .launch = line.event else { return }
            launched.append(line.device)
            seen[line.device, default: []].append(Int(line.moment.milliseconds / 1000))
        }
        self.launches = seen
        return launched
    }

    /// The fraction of uses with a refresh in the hour before.
    var refreshed: Double { Double(self.leads.count { $0 <= Self.hour }) / Double(self.leads.count) }

    var medianLead: Int { self.leads[self.leads.count / 2] }
}

@Suite("A day of devices with habits")
struct HabitDayTests {
    @Test("With habits more refreshes precede uses, and by a shorter time", arguments: 1...5)
    func habits(seed: UInt64) throws {
        let habits = try HabitDay(seed: seed, overrides: [])
        let none = try HabitDay(seed: seed, overrides: [("policy.refreshFlex", 0)])
        #expect(habits.leads.count == 60)
        #expect(habits.refreshed > none.refreshed, "\(habits.refreshed) and \(none.refreshed)")
        #expect(habits.medianLead < none.medianLead, "\(habits.medianLead) and \(none.medianLead)")
    }
}
