import Policy
import Testing

@Suite("Holds")
struct HoldTests {
    typealias Row = HoldRow

    /// The first hold for priorities 1, 5 and 10.
    static let rows = [
        Row("unreported", [.priority, nil, nil]) { _ in },
        Row("active", [nil, nil, nil]) { $0.appState = .active },
        Row("active, and all else bad", [nil, nil, nil]) {
            $0.appState = .active
            $0.backgroundRefresh = .denied
            $0.network = false
            $0.thermalState = .critical
            $0.batteryLevel = 0
        },
        Row("force quit", [.forceQuit, .forceQuit, .forceQuit]) { $0.appState = .forceQuit },
        Row("refresh denied", [.backgroundRefresh, .backgroundRefresh, .backgroundRefresh]) {
            $0.backgroundRefresh = .denied
        },
        Row("refresh restricted", [.backgroundRefresh, .backgroundRefresh, .backgroundRefresh]) {
            $0.backgroundRefresh = .restricted
        },
        Row("no network", [.network, .network, .network]) { $0.network = false },
        Row("thermal fair", [.priority, nil, nil]) { $0.thermalState = .fair },
        Row("thermal serious", [.thermal, .thermal, nil]) { $0.thermalState = .serious },
        Row("thermal critical", [.thermal, .thermal, .thermal]) { $0.thermalState = .critical },
        Row("battery at the limit", [.priority, nil, nil]) { $0.batteryLevel = 0.2 },
        Row("battery below the limit", [.battery, .battery, nil]) { $0.batteryLevel = 0.199 },
        Row("battery low, charging", [.priority, nil, nil]) {
            $0.batteryLevel = 0
            $0.charging = true
        },
        Row("low power mode", [.priority, nil, nil]) { $0.lowPowerMode = true },
        Row("force quit comes before refresh", [.forceQuit, .forceQuit, .forceQuit]) {
            $0.appState = .forceQuit
            $0.backgroundRefresh = .denied
        },
        Row("refresh comes before network", [.backgroundRefresh, .backgroundRefresh, .backgroundRefresh]) {
            $0.backgroundRefresh = .denied
            $0.network = false
        },
        Row("network comes before thermal", [.network, .network, .network]) {
            $0.network = false
            $0.thermalState = .critical
        },
        Row("thermal comes before battery", [.thermal, .thermal, nil]) {
            $0.thermalState = .serious
            $0.batteryLevel = 0
        },
    ]

    @Test("The first hold that applies is found, for each priority", arguments: Self.rows)
    func first(_ row: Row) {
        var conditions = Conditions()
        conditions.apply(row.report)
        let holds = Priority.allCases.map { conditions.firstHold($0, criticalBattery: 0.2) }
        #expect(holds == row.holds)
    }

    @Test("A report changes only the fields it names")
    func reports() {
        var conditions = Conditions()
        var report = ConditionsReport()
        report.batteryLevel = 0.5
        report.network = false
        conditions.apply(report)
        conditions.apply(ConditionsReport())
        var expected = Conditions()
        expected.batteryLevel = 0.5
        expected.network = false
        #expect(conditions == expected)
    }
}
