import Policy
import Testing

@Suite("Parameters", .timeLimit(.minutes(15)))
struct ParametersTests {
    typealias Row = (name: PolicyParameter, minimum: Double, maximum: Double, tooLittle: Double, tooMuch: Double)

    static let rows: [Row] = PolicyParameter.allCases.map { name in
        switch name {
        case .launchInterval, .budgetWindow, .immediateRefill, .executionWindow, .maxInterval, .defaultTTL,
            .processingWindow, .processingInterval, .progressWindow, .pressureStep:
            (name, 0.001, 3_155_760_000, 0, 3_155_760_001)
        case .dailyLaunches, .immediateBurst, .maxAttempts: (name, 1, 1_000_000_000, 0, 1_000_000_001)
        case .maxPenalty: (name, 0, 20, -1, 21)
        case .maxExtension, .expirationLead, .usageWindow, .refreshFlex, .refreshLead:
            (name, 0, 3_155_760_000, -1, 3_155_760_001)
        case .criticalBattery: (name, 0, 1, -0.001, 1.001)
        case .continuedMax: (name, 1, 1000, 0, 1001)
        }
    }

    @Test("Each parameter accepts its minimum and maximum, and nothing beyond them", arguments: Self.rows)
    func range(_ row: Row) {
        var parameters = Parameters()
        for value in [row.minimum, row.maximum] {
            #expect(row.name.set(value, in: &parameters))
            #expect(row.name.value(in: parameters) == value)
        }
        #expect(parameters != Parameters())
        let before = parameters
        for value in [row.tooLittle, row.tooMuch, .nan, .infinity, -.infinity] {
            #expect(!row.name.set(value, in: &parameters))
        }
        #expect(parameters == before)
    }

    @Test("Counts are whole, durations are rounded to milliseconds")
    func whole() {
        var parameters = Parameters()
        #expect(!PolicyParameter.maxAttempts.set(1.5, in: &parameters))
        #expect(!PolicyParameter.continuedMax.set(1.5, in: &parameters))
        #expect(PolicyParameter.launchInterval.set(1.0006, in: &parameters))
        #expect(parameters.launchInterval == 1001)
        #expect(PolicyParameter.launchInterval.set(0.29, in: &parameters))
        #expect(parameters.launchInterval == 290)
        #expect(PolicyParameter.refreshLead.set(1.0006, in: &parameters))
        #expect(parameters.refreshLead == 1001)
    }

    @Test("Setting one parameter changes only that one, and is read back", arguments: PolicyParameter.allCases)
    func alone(parameter: PolicyParameter) {
        let defaults = Parameters()
        let value = parameter == .criticalBattery ? 0.5 : 17
        var parameters = defaults
        #expect(parameter.set(value, in: &parameters))
        for other in PolicyParameter.allCases {
            #expect(other.value(in: parameters) == (other == parameter ? value : other.value(in: defaults)))
        }
    }

    @Test("Each parameter states its accepted values and its purpose")
    func words() {
        for parameter in PolicyParameter.allCases {
            #expect(parameter.requirement.contains("number"))
        }
        #expect(Set(PolicyParameter.allCases.map(\.summary)).count == PolicyParameter.allCases.count)
        #expect(PolicyParameter.continuedMax.requirement == "a whole number from 1 to 1000")
        #expect(PolicyParameter.maxAttempts.summary == "the maximum number of attempts of one push, task or session")
    }

    @Test("Minus infinity stays unchanged, and sums saturate")
    func instants() {
        #expect(Instant.distantPast + 5 == .distantPast)
        #expect(Instant.distantPast - 5 == .distantPast)
        #expect(Instant(milliseconds: .max - 1) + 5 == .distantFuture)
        #expect(Instant(milliseconds: .min + 1) - 5 == .distantPast)
        #expect(Instant(milliseconds: 7) - 5 == Instant(milliseconds: 2))
    }
}
