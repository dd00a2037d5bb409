import Policy
import Testing
import Wire

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
        Row("memory critical", [.priority, nil, nil]) { $0.memoryPressure = .critical },
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
}

@Suite("Holds of background tasks")
struct TaskHoldTests {
    typealias Row = HoldRow

    /// The first hold for a refresh, a processing task that needs network and power, one without needs, a continued
    /// task, and a session. The device is charging unless a row says otherwise.
    static let rows = [
        Row("charging", [nil, nil, nil, nil, nil]) { _ in },
        Row("force quit", [.forceQuit, .forceQuit, .forceQuit, nil, .forceQuit]) { $0.appState = .forceQuit },
        Row("refresh denied", [.backgroundRefresh, .backgroundRefresh, .backgroundRefresh, nil, .backgroundRefresh]) {
            $0.backgroundRefresh = .denied
        },
        Row("active", [.active, .active, .active, nil, nil]) { $0.appState = .active },
        Row("active, denied, too hot", [.backgroundRefresh, .backgroundRefresh, .backgroundRefresh, .thermal, nil]) {
            $0.appState = .active
            $0.backgroundRefresh = .restricted
            $0.thermalState = .critical
        },
        Row("no network", [.network, .network, nil, nil, .network]) { $0.network = false },
        Row("no power", [nil, .power, nil, nil, nil]) { $0.charging = false },
        Row("low power", [nil, .lowPower, .lowPower, nil, nil]) { $0.lowPowerMode = true },
        Row("thermal fair", [nil, nil, nil, nil, nil]) { $0.thermalState = .fair },
        Row("thermal serious", [.thermal, .thermal, .thermal, nil, .thermal]) { $0.thermalState = .serious },
        Row("thermal critical", [.thermal, .thermal, .thermal, .thermal, .thermal]) { $0.thermalState = .critical },
        Row("memory warning", [nil, nil, nil, nil, nil]) { $0.memoryPressure = .warning },
        Row("memory critical", [.memory, .memory, .memory, nil, nil]) { $0.memoryPressure = .critical },
        Row("memory comes after thermal and before battery", [.memory, .power, .memory, nil, .battery]) {
            $0.memoryPressure = .critical
            $0.charging = false
            $0.batteryLevel = 0
        },
        Row("thermal comes before memory", [.thermal, .thermal, .thermal, .thermal, .thermal]) {
            $0.memoryPressure = .critical
            $0.thermalState = .critical
        },
        Row("battery low", [.battery, .power, .battery, nil, .battery]) {
            $0.charging = false
            $0.batteryLevel = 0.199
        },
        Row("battery low, charging", [nil, nil, nil, nil, nil]) { $0.batteryLevel = 0 },
        Row("everything", [.forceQuit, .forceQuit, .forceQuit, .thermal, .forceQuit]) {
            $0.appState = .forceQuit
            $0.backgroundRefresh = .denied
            $0.network = false
            $0.charging = false
            $0.lowPowerMode = true
            $0.thermalState = .critical
            $0.batteryLevel = 0
        },
        Row("all but force quit and refresh", [.network, .network, .lowPower, .thermal, .network]) {
            $0.network = false
            $0.charging = false
            $0.lowPowerMode = true
            $0.thermalState = .critical
            $0.batteryLevel = 0
        },
    ]

    @Test("Each kind has the first of its holds", arguments: Self.rows)
    func first(_ row: Row) throws {
        var lanes = DeviceLanes()
        var report = row.report
        report.charging = report.charging ?? true
        _ = lanes.conditionsReported(report, at: LanesDriver.at(0), Parameters())
        let tasks = [
            Self.task(.appRefresh, .network), Self.task(.processing, [.network, .externalPower]),
            Self.task(.processing, []), Self.task(.continued, []), Self.task(.urlSession, []),
        ]
        #expect(tasks.map { lanes.hold($0, at: LanesDriver.at(1), Parameters()) } == row.holds)
    }

    @Test("Long without use, refreshes and processing are held, and nothing is when there never was any")
    func usage() throws {
        var parameters = Parameters()
        #expect(PolicyParameter.usageWindow.set(100, in: &parameters))
        var lanes = DeviceLanes()
        let tasks = TaskKind.allCases.map { Self.task($0, []) }
        #expect(tasks.allSatisfy { lanes.hold($0, at: LanesDriver.at(1000), parameters) == nil })
        var report = ConditionsReport()
        report.appState = .active
        _ = lanes.conditionsReported(report, at: LanesDriver.at(10), parameters)
        report.appState = .background
        _ = lanes.conditionsReported(report, at: LanesDriver.at(50), parameters)
        #expect(tasks.allSatisfy { lanes.hold($0, at: LanesDriver.at(149.999), parameters) == nil })
        #expect(tasks.map { lanes.hold($0, at: LanesDriver.at(150), parameters) } == [.usage, .usage, nil, nil])
        #expect(tasks.allSatisfy { lanes.hold($0, at: LanesDriver.at(150), Parameters()) == nil })
    }

    private static func task(_ kind: TaskKind, _ needs: TaskNeeds) -> BackgroundTask {
        BackgroundTask(
            name: TaskName(rawValue: 0),
            kind: kind,
            needs: needs,
            arrivedAt: LanesDriver.at(0),
            waitsSince: LanesDriver.at(0),
            arrival: 1
        )
    }
}

/// A conditions report, and the first hold that it causes for each kind of launch.
struct HoldRow: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let report: ConditionsReport
    /// The holds in the order of the table's columns; nil for none.
    let holds: [Hold?]

    init(_ name: String, _ holds: [Hold?], _ change: (inout ConditionsReport) -> Void) {
        var report = ConditionsReport()
        change(&report)
        self.testDescription = name
        self.report = report
        self.holds = holds
    }
}
