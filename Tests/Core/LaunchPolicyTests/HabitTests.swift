import Policy
import Testing

@Suite("Habits")
struct HabitTests {
    private static let hour = 3600.0
    private static let day = 86_400.0

    /// Returns the time, in seconds, at which a refresh that is pending since `seconds` may launch, on a device that
    /// was used at `uses` for ten minutes each.
    private static func eligible(
        _ seconds: Double,
        _ uses: [Double],
        _ parameters: [(PolicyParameter, Double)] = []
    ) throws -> Double {
        var driver = try LanesDriver(parameters)
        for use in uses {
            driver.report(at: use) { $0.appState = .active }
            driver.report(at: use + 600) { $0.appState = .background }
        }
        let refresh = BackgroundTask(
            name: driver.name("r"),
            kind: .appRefresh,
            arrivedAt: LanesDriver.at(seconds),
            waitsSince: LanesDriver.at(seconds),
            arrival: 1
        )
        return Double(driver.lanes.eligibleAt(refresh, driver.parameters).milliseconds) / 1000
    }

    /// 18:00 on three days.
    private static let evenings = (0..<3).map { Double($0) * day + 18 * hour }
    /// 18:00 on the following day.
    private static let evening = 3 * day + 18 * hour

    @Test("A refresh waits until the lead of a habitual hour, when that is within reach")
    func putOff() throws {
        let lead = Self.evening - 900
        #expect(try Self.eligible(Self.evening - 2 * Self.hour, Self.evenings) == lead)
        #expect(try Self.eligible(lead - 14_400, Self.evenings) == lead)
        #expect(try Self.eligible(lead - 14_400.001, Self.evenings) == lead - 14_400.001)
        #expect(try Self.eligible(lead - 60, Self.evenings, [(.refreshFlex, 59)]) == lead - 60)
        #expect(try Self.eligible(lead - 60, Self.evenings, [(.refreshFlex, 0)]) == lead - 60)
    }

    @Test("In the lead of a habitual hour and within it but for the lead of its end, a refresh need not wait")
    func atOnce() throws {
        for seconds in [-900, -899.999, -1, 0, 1800, 2699.999] {
            #expect(try Self.eligible(Self.evening + seconds, Self.evenings) == Self.evening + seconds)
        }
        let parameters: [(PolicyParameter, Double)] = [(.refreshFlex, 100_000)]
        let next = Self.evening + Self.day - 900
        #expect(try Self.eligible(Self.evening + 2700, Self.evenings, parameters) == next)
        #expect(try Self.eligible(Self.evening - 1, Self.evenings, parameters + [(.refreshLead, 0)]) == Self.evening)
    }

    @Test("Three days make a habit, two do not, nor do three uses in one hour")
    func days() throws {
        let moment = Self.evening - Self.hour
        #expect(try Self.eligible(moment, Array(Self.evenings.dropFirst())) == moment)
        let thrice = [0, 1000, 2000].map { 2 * Self.day + 18 * Self.hour + $0 }
        #expect(try Self.eligible(moment, thrice) == moment)
    }

    @Test("Uses more than a week before the last are forgotten, and the passing of time forgets nothing")
    func week() throws {
        let later = 7 * Self.day + 10 * Self.hour
        let moment = 8 * Self.day + 16 * Self.hour
        let lead = 8 * Self.day + 18 * Self.hour - 900
        func eligible(_ moment: Double, lastUse: Double) throws -> Double {
            try Self.eligible(moment, Self.evenings + [lastUse])
        }
        #expect(try eligible(moment, lastUse: later) == lead, "the last 168 hours have all three")
        #expect(try eligible(moment, lastUse: later + 8 * Self.hour) == lead, "one takes the first's place")
        #expect(try eligible(moment, lastUse: later + 9 * Self.hour) == moment, "the first is forgotten")
        let month = 30 * Self.day
        #expect(try eligible(moment + month, lastUse: later) == lead + month, "the passing of time forgets nothing")
        #expect(try eligible(moment + month, lastUse: later + 20 * Self.day) == moment + month)
    }
}
