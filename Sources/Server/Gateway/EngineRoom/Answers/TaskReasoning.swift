import Engine
import Platform
import Policy
import Wire

/// Says in one sentence why a request or a session's transfers are or are not being launched, and what would change
/// that.
struct TaskReasoning {
    let task: TaskSnapshot
    let device: DeviceSnapshot
    let offset: WallOffset

    var sentence: String {
        switch self.task.state {
        case .running(_, let launchedAt, let deadline, let progress):
            let begin = "\(self.subject) has been running since \(self.time(launchedAt))"
            guard self.task.task.kind == .continued else {
                return "\(begin), and its worker has until \(self.time(deadline)) to report success or failure."
            }
            return "\(begin), \(self.advance(progress, launchedAt, deadline)), and has until \(self.time(deadline)) to "
                + "advance or end."
        case .waiting(let eligibleAt, let held, let laneIsFull):
            if let code = held.first, code != .worker {
                return "\(self.subject) is held because \(self.cause(of: code))."
            }
            if let eligibleAt { return "\(self.subject) \(self.waiting(until: eligibleAt))." }
            return laneIsFull ? "\(self.subject) waits \(self.laneWait)." : self.worker
        }
    }

    private var subject: String {
        switch self.task.task.kind {
        case .appRefresh: "The refresh"
        case .processing: "The processing task"
        case .continued: "The continued task"
        case .urlSession: "The session's wake"
        }
    }

    /// How far a continued task is, and since when.
    private func advance(_ progress: TaskProgress?, _ launchedAt: Instant, _ deadline: Instant) -> String {
        guard let progress else { return "has told of no progress" }
        let done = progress.total > 0 ? "\(progress.completed) of \(progress.total)" : "\(progress.completed)"
        // An advance is what moved the deadline last, by the window of then.
        let moved = deadline - self.device.parameters.progressWindow
        return moved > launchedAt ? "advanced to \(done) at \(self.time(moved))" : "has told of \(done)"
    }

    // MARK: Holds

    /// What holds it, and what ends the hold.
    private func cause(of code: Hold) -> String {
        let conditions = self.device.state.conditions
        switch code {
        case .paused:
            return "the topic \(self.device.topic) is paused, and launches once it is resumed (wakegate topic resume "
                + "\(self.device.topic))"
        case .forceQuit:
            let states = self.task.task.kind == .urlSession ? "background or active" : "background"
            return "the app was force-quit, and launches once appState is reported as \(states)"
        case .backgroundRefresh:
            return "background refresh is \(conditions.backgroundRefresh.rawValue), and launches once it is reported "
                + "as available"
        case .active: return "the device is in use, and launches once appState is reported as background"
        case .network: return "the device has no network, which it needs, and launches once it reports one"
        case .power:
            return "it requires external power and the device is not charging, and launches once charging is reported"
        case .lowPower:
            return "the device is in low power mode, and launches once lowPowerMode is reported as false"
        case .thermal:
            return "the thermal state is \(conditions.thermalState.rawValue), and launches once the device reports "
                + "that it is cooler"
        case .battery:
            return "the battery is at \(JSONNumber.percent(conditions.batteryLevel)), below the critical "
                + "\(JSONNumber.percent(self.device.parameters.criticalBattery)), and not charging; it launches once "
                + "the device reports more charge or a charger"
        case .usage:
            let window = JSONNumber.seconds(self.device.parameters.usageWindow)
            return "nobody has used the device since \(self.time(self.device.usage.last)), for longer than the "
                + "\(window) s of usageWindow; it launches after the next use"
        case .priority, .worker: return "no worker has a free slot"
        }
    }

    // MARK: Time

    private func waiting(until eligibleAt: Instant) -> String {
        let moment = self.time(eligibleAt)
        let earliest = self.task.task.waitsSince
        switch self.task.task.kind {
        case .appRefresh:
            let spaced = self.device.state.eligibleAt(.considerate, self.device.parameters)
            guard eligibleAt <= max(earliest, spaced) else {
                let use = eligibleAt + self.device.parameters.refreshLead
                return "is put off until \(moment), to come right before the habitual use of the device at "
                    + "\(self.time(use))"
            }
            return eligibleAt == earliest
                ? self.begins(at: moment) : "waits until \(moment)\(self.spacing.clause(until: eligibleAt))"
        case .processing:
            return eligibleAt == earliest ? self.begins(at: moment) : "waits until \(moment): \(self.processingSpacing)"
        case .urlSession, .continued:
            return "waits until \(moment)\(self.spacing.clause(until: eligibleAt))"
        }
    }

    private func begins(at moment: String) -> String { "waits for its earliest beginning at \(moment)" }

    private var spacing: SpacingReasoning {
        SpacingReasoning(device: self.device, priority: .considerate, offset: self.offset)
    }

    private var processingSpacing: String {
        let seconds = JSONNumber.seconds(self.device.parameters.processingInterval)
        let penalty = self.device.state.penalty
        let cause = penalty > 0 ? " (\(SpacingReasoning.doubled(penalty)))" : ""
        return "processing tasks of a device are launched at least \(seconds) s apart\(cause)"
    }

    // MARK: Slots

    private var laneWait: String {
        let lane = self.task.task.kind.lane
        let running = self.device.tasks.filter { $0.task.kind.lane == lane }.compactMap(Running.init)
        switch lane {
        case .continued:
            let names = running.map(\.name).joined(separator: ", ")
            return "until fewer than \(self.device.parameters.continuedMax) continued tasks of the device are "
                + "running; now those are \(names)"
        case .short, .processing:
            if let other = running.first {
                return "for \(other.name) to end, which has until \(self.time(other.deadline))"
            }
            guard let push = self.device.state.inFlight else { return "for the wake in flight to end" }
            return "for the wake in flight of a push to end, which has until \(self.time(push.deadline))"
        }
    }

    /// Something that runs, and until when it may.
    private struct Running {
        let name: String
        let deadline: Instant

        init?(_ task: TaskSnapshot) {
            guard case .running(_, _, let deadline, _) = task.state else { return nil }
            self.name = task.name
            self.deadline = deadline
        }
    }

    private var worker: String {
        let key = self.task.task.kind == .urlSession ? "session" : "task"
        let resources = self.task.details.resources.map { " and resource=\($0)" }.joined()
        let what = "\(key)=\(self.task.name)\(resources)"
        guard self.task.isTaken else {
            return "\(self.subject) is due, but no stream of \(self.device.topic) takes \(what) of this device: start "
                + "a worker that subscribes with it."
        }
        return "\(self.subject) is due, but no stream of \(self.device.topic) that takes \(what) of this device has a "
            + "free slot: it launches once one has; start another worker, or give one more slots."
    }

    private func time(_ instant: Instant) -> String { WallTime.textRoundedUp(self.offset.wall(instant)) }
}
