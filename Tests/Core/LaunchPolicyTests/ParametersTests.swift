import Policy
import Testing

@Suite("Parameters")
struct ParametersTests {
    typealias Row = (name: Parameters.Name, least: Double, most: Double, tooLittle: Double, tooMuch: Double)

    static let rows: [Row] = Parameters.Name.allCases.map { name in
        switch name {
        case .launchInterval, .budgetWindow, .immediateRefill, .executionWindow, .maxInterval, .defaultTTL:
            (name, 0.001, 3_155_760_000, 0, 3_155_760_001)
        case .dailyLaunches, .immediateBurst, .maxAttempts: (name, 1, 1_000_000_000, 0, 1_000_000_001)
        case .maxPenalty: (name, 0, 20, -1, 21)
        case .maxExtension: (name, 0, 3_155_760_000, -1, 3_155_760_001)
        case .criticalBattery: (name, 0, 1, -0.001, 1.001)
        }
    }

    @Test("Each parameter takes its least and its most, and nothing past them", arguments: Self.rows)
    func range(_ row: Row) throws {
        var parameters = Parameters()
        try parameters.set(row.name, to: row.least)
        try parameters.set(row.name, to: row.most)
        #expect(parameters != Parameters())
        let before = parameters
        for value in [row.tooLittle, row.tooMuch, .nan, .infinity, -.infinity] {
            #expect(throws: Parameters.OutOfRange.self) { try parameters.set(row.name, to: value) }
        }
        #expect(parameters == before)
    }

    @Test("Counts are whole, durations are rounded to milliseconds")
    func whole() throws {
        var parameters = Parameters()
        #expect(throws: Parameters.OutOfRange.self) { try parameters.set(.maxAttempts, to: 1.5) }
        try parameters.set(.launchInterval, to: 1.0006)
        #expect(parameters.launchInterval == 1001)
        try parameters.set(.launchInterval, to: 0.29)
        #expect(parameters.launchInterval == 290)
    }

    @Test("Minus infinity stays what it is, and sums saturate")
    func instants() {
        #expect(Instant.distantPast + 5 == .distantPast)
        #expect(Instant.distantPast - 5 == .distantPast)
        #expect(Instant(milliseconds: .max - 1) + 5 == .distantFuture)
        #expect(Instant(milliseconds: .min + 1) - 5 == .distantPast)
        #expect(Instant(milliseconds: 7) - 5 == Instant(milliseconds: 2))
    }

    @Test("Priorities are those of apns-priority, and compare by urgency")
    func priorities() {
        #expect(Priority.allCases.map(\.rawValue) == [1, 5, 10])
        #expect(Priority.allCases.sorted() == [.passive, .considerate, .immediate])
    }
}
