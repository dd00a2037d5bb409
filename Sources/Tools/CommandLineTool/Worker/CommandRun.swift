package import WakeWorker

/// The command of one wake, for the task that awaits its end.
///
/// `@unchecked Sendable`: it is touched on its `CommandThread` alone.
final class CommandRun: @unchecked Sendable {
    let notification: WakeNotification
    /// Of the command, once it was started.
    var pid: Int32?
    /// Whether nobody needs it any more.
    var isStopped = false
    private var continuation: CheckedContinuation<BackgroundFetchResult, Never>?

    init(_ notification: WakeNotification) {
        self.notification = notification
    }

    func awaited(by continuation: CheckedContinuation<BackgroundFetchResult, Never>) {
        self.continuation = continuation
    }

    func end(_ result: BackgroundFetchResult) {
        self.continuation?.resume(returning: result)
        self.continuation = nil
    }
}

extension BackgroundFetchResult {
    /// The result that an exit status stands for; nil stands for a command that a signal ended.
    package init(exitStatus: Int32?) {
        self =
            switch exitStatus {
            case .some(0): .newData
            case .some(3): .noData
            case .some, .none: .failed
            }
    }
}

extension WakeNotification {
    /// The variables that the wake's command finds in its environment.
    package var commandEnvironment: [String: String] {
        var variables = [
            "WAKEGATE_WAKE": self.id, "WAKEGATE_DEVICE": self.deviceToken, "WAKEGATE_TOPIC": self.topic,
            "WAKEGATE_ATTEMPT": String(self.attempt), "WAKEGATE_COALESCED": String(self.coalescedCount),
            "WAKEGATE_DEADLINE": String(self.firstDeadline),
        ]
        // Those that tracing libraries and tools look for.
        variables["TRACEPARENT"] = self.traceparent
        variables["TRACESTATE"] = self.tracestate
        return variables
    }
}
