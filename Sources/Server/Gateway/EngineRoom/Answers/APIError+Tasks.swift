import Engine
import Policy
import Wire

extension TaskRejection {
    /// The reason in the answer to the caller.
    var reason: String {
        switch self {
        case .policy(let refusal): refusal.rawValue
        case .tooManySessions: APIError.tooManySessions.reason
        case .bound(let limit): APIError.tooManyTasks(limit: limit.rawValue).reason
        }
    }
}

/// The errors of operations on background tasks.
extension APIError {
    /// Creates the error for a request that the policy refuses.
    ///
    /// - `identifier`: the identifier of the request.
    /// - `topic`: the topic of the device.
    init(_ refusal: TaskRefusal, identifier: String, topic: String) {
        let message =
            switch refusal {
            case .notPermitted:
                "The configuration of \(topic) does not permit \(identifier); name it, or a pattern that ends in .* "
                    + "and matches it, in topics.\(topic).tasks."
            case .unavailable:
                "Background refresh of the device is not available; submit again once backgroundRefresh is reported as "
                    + "available."
            case .notForeground:
                "A continued task is started by a person who uses the device; submit it while appState is active."
            case .tooManyPendingTaskRequests:
                "As many requests of this kind wait on the device as may: 1 appRefresh, 10 processing, 10 continued; "
                    + "cancel one, or wait until one is launched."
            case .immediateRunIneligible:
                "It cannot launch at once, and with the strategy fail it does not wait; submit it later, or with the "
                    + "strategy queue."
            }
        self.init(refusal == .notPermitted ? 403 : 409, refusal.rawValue, message)
    }

    static let tooManySessions = APIError(
        409,
        "TooManySessions",
        "Finished transfers of eight sessions wait on the device already; report this one when one was launched."
    )
    static let notContinued = APIError(
        409,
        "NotContinued",
        "The wake is of another kind than continued, which alone has progress; ask for more time with "
            + "POST /v1/wakes/<wake>/extend."
    )
    static let successExpected = APIError(
        400,
        "BadResult",
        "The wake is a task's or a session's: send success, true or false, and no result."
    )
    static let resultExpected = APIError(
        400,
        "BadResult",
        "The wake is a push's: send the result newData, noData or failed, and no success."
    )
    static let laneIsFull = APIError(
        409,
        "WakeInFlight",
        "As many wakes of its lane are in flight on this device as may; wait for a result, or end one with "
            + "simulate-expiration."
    )
    static let taskNotWaiting = APIError(
        409,
        "TaskNotWaiting",
        "No request of this identifier waits on the device; GET /v1/devices/<token>/tasks shows those that do."
    )
    static let taskNotRunning = APIError(
        409,
        "NoWakeInFlight",
        "No task of this identifier runs on the device; GET /v1/devices/<token>/tasks shows those that do."
    )
    static let noWorkerForTask = APIError(
        409,
        "NoWorker",
        "No stream of the topic that takes this task has a free slot for this device; subscribe with task=<identifier> "
            + "and the resources it needs, or wait."
    )

    /// Creates the error for a reached limit on stored task requests.
    ///
    /// - `limit`: the name in the configuration of the limit that was reached.
    static func tooManyTasks(limit: String) -> APIError {
        APIError(
            429,
            "TooManyRequests",
            "As many requests of background tasks, or bytes of them, are kept as limits.\(limit) allows; wait until "
                + "some have ended, or cancel some."
        )
    }
}
