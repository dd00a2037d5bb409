import Policy
import Wire

/// A device state with its parameters, driven by tests with times in seconds.
struct DeviceDriver {
    var state = DeviceState()
    /// The tasks of the device: none.
    private var tasks = BackgroundTasks()
    var parameters = Parameters()
    private var lastHandle: UInt64 = 0

    init(_ parameters: [(PolicyParameter, Double)] = []) throws {
        for (name, value) in parameters { try self.parameters.set(name, to: value) }
    }

    static func at(_ seconds: Double) -> Instant {
        Instant(milliseconds: Int64(seconds * 1000))
    }

    @discardableResult
    mutating func push(
        _ priority: Priority,
        at seconds: Double,
        expiration: Expiration = .absent,
        workerIsFree: Bool = true
    ) -> PushReceivedAction {
        self.lastHandle += 1
        return self.state.pushReceived(
            PushHandle(rawValue: self.lastHandle),
            priority,
            expiration,
            at: Self.at(seconds),
            workerIsFree: workerIsFree,
            self.parameters,
            with: &self.tasks
        )
    }

    @discardableResult
    mutating func report(_ change: (inout ConditionsReport) -> Void) -> PushHandle? {
        var report = ConditionsReport()
        change(&report)
        return self.state.conditionsReported(report)
    }

    /// Ends the wake in flight.
    @discardableResult
    mutating func end(_ outcome: WakeOutcome, at seconds: Double, restarted: Bool = false) -> WakeEndedAction {
        self.state.wakeEnded(
            outcome,
            at: Self.at(seconds),
            takingBackAttempt: restarted,
            self.parameters,
            with: &self.tasks
        )
    }

    mutating func timePassed(_ seconds: Double) -> TimePassedAction {
        self.state.timePassed(Self.at(seconds), self.parameters, with: &self.tasks)
    }

    mutating func extend(until seconds: Double) -> ExtensionRequestedAction {
        self.state.extensionRequested(until: Self.at(seconds), self.parameters)
    }

    mutating func launch(at seconds: Double) {
        self.state.launched(at: Self.at(seconds), self.parameters, with: &self.tasks)
    }

    mutating func launchForced(at seconds: Double) {
        self.state.launchForced(at: Self.at(seconds), self.parameters, with: &self.tasks)
    }

    func isLaunchable(_ seconds: Double) -> Bool {
        self.state.isLaunchable(Self.at(seconds), self.parameters)
    }

    func interval(_ priority: Priority) -> Double {
        Double(self.state.interval(priority, self.parameters)) / 1000
    }

    func eligibleAt(_ priority: Priority) -> Instant {
        self.state.eligibleAt(priority, self.parameters)
    }
}
