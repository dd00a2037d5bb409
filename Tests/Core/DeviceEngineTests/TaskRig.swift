import Engine
import Policy
import Testing
import WakeGateTestKit

/// Task operations of tests, with devices identified by numbers.
extension EngineRig {
    /// Returns a configuration with open registration, all identifiers permitted, and parameters by name.
    static func permitting(
        _ parameters: [(PolicyParameter, Double)] = [],
        tasks: [(PolicyParameter, Double)] = []
    ) -> EngineConfiguration {
        var configuration = EngineRig.open(parameters)
        configuration.permittedTasks = .all
        for (name, value) in tasks {
            do {
                try configuration.policy.set(name, to: value)
            } catch {
                preconditionFailure("\(name.rawValue) must be \(name.requirement)")
            }
        }
        return configuration
    }

    /// Submits a request for a registered device.
    @discardableResult
    func submit(
        _ device: Int,
        _ identifier: String,
        _ kind: TaskSubmission.Kind = .appRefresh,
        after seconds: Int64? = nil,
        details: TaskDetails = TaskDetails(),
        hasSlot: Bool = false
    ) throws(TaskRejection) -> TaskAnswer {
        self.register(device)
        _ = self.engine.catchUp(self.index(device))
        let request = IncomingTask(
            identifier: identifier,
            kind: kind,
            earliestBegin: seconds.map { Instant(milliseconds: self.now + $0 * 1000) },
            details: details
        )
        return try self.engine.submit(request, device: self.index(device), hasSlot: hasSlot)
    }

    /// Launches the next push or task of a device.
    func launchNext(_ device: Int) -> LaunchedWake? { self.engine.claim(self.index(device)) { _ in true } }

    /// Returns the names of pending and of running tasks.
    func tasks(_ device: Int) -> (waiting: [String], running: [String]) {
        let tasks = self.engine.tasks(of: self.index(device))
        func names(_ isRunning: Bool) -> [String] {
            tasks.filter { if case .running = $0.state { isRunning } else { !isRunning } }.map(\.name)
        }
        return (names(false), names(true))
    }

    /// True if every request and every transfer is accounted for exactly once.
    var isConserved: Bool {
        let counters = self.engine.totals
        return counters.requests.submitted.sum == counters.requestsAccountedFor
            && counters.sessions.finished == counters.sessions.accountedFor
            && counters.accepted == counters.accountedFor
    }
}
