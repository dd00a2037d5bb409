import Policy
import Testing

@Suite("Parameters of background tasks")
struct TaskParametersTests {
    typealias Row = (name: TaskParameters.Name, least: Double, most: Double, tooLittle: Double, tooMuch: Double)

    static let rows: [Row] = TaskParameters.Name.allCases.map { name in
        switch name {
        case .processingWindow, .processingInterval, .progressWindow: (name, 0.001, 3_155_760_000, 0, 3_155_760_001)
        case .usageWindow, .refreshFlex, .refreshLead: (name, 0, 3_155_760_000, -1, 3_155_760_001)
        case .continuedMax: (name, 1, 1000, 0, 1001)
        }
    }

    @Test("Each parameter takes its least and its most, and nothing past them", arguments: Self.rows)
    func range(_ row: Row) throws {
        var parameters = TaskParameters()
        for value in [row.least, row.most] {
            try parameters.set(row.name, to: value)
            #expect(parameters.value(row.name) == value)
        }
        let before = parameters
        for value in [row.tooLittle, row.tooMuch, .nan, .infinity, -.infinity] {
            #expect(throws: TaskParameters.OutOfRange.self) { try parameters.set(row.name, to: value) }
        }
        #expect(parameters == before)
    }

    @Test("Counts are whole, durations are rounded to milliseconds")
    func whole() throws {
        var parameters = TaskParameters()
        #expect(throws: TaskParameters.OutOfRange.self) { try parameters.set(.continuedMax, to: 1.5) }
        try parameters.set(.refreshLead, to: 1.0006)
        #expect(parameters.refreshLead == 1001)
    }
}
