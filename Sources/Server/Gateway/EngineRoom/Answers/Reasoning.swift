import Engine
import Platform
import Policy
import Wire

/// Says in one sentence why a device is or is not being woken, and what would change that.
struct Reasoning {
    let device: DeviceSnapshot
    /// How the webhook of its topic is; nil when it has none.
    let webhook: WebhookStatus?
    /// The workers of its topic.
    let workers: Dispatcher.WorkerCounts
    let now: Instant
    let offset: WallOffset

    var sentence: String { self.silence.map { "\(self.state) \($0)" } ?? self.state }

    /// The doubt that a worker receives its wakes at all; nil if there is none.
    private var silence: String? {
        self.device.silentWorker.map { worker in
            "Its last wake expired unanswered on the stream of \(worker), from which nothing was ever received: the "
                + "worker may not have received it: a buffering proxy?"
        }
    }

    private var state: String {
        let state = self.device.state
        if let inFlight = state.inFlight {
            let behind = state.pending == nil ? "" : "; a newer push waits for it to end"
            return "A wake has been in flight since \(self.time(inFlight.launchedAt)), "
                + "and its worker has until \(self.time(inFlight.deadline)) to report a result\(behind)."
        }
        guard self.device.isRegistered else {
            return "The device was removed at \(self.time(self.device.registrationChangedAt)), "
                + "and pushes to it are refused until it registers again."
        }
        guard let pending = state.pending else { return self.nothingPending }
        if let code = self.device.held.first, code != .worker { return self.held(code, pending) }
        let eligibleAt = state.eligibleAt(pending.priority, self.device.parameters)
        guard eligibleAt <= self.now else { return self.waits(until: eligibleAt, pending) }
        if let other = self.runningTask {
            return "The push waits for \(other.name) to end, which runs in the same lane and has until "
                + "\(self.time(other.deadline))."
        }
        if let webhook = self.webhook { return webhook.reason(topic: self.device.topic) }
        if let reason = self.workers.stallReason {
            return "The push is due, but no worker subscribed to \(self.device.topic) has a free slot for this device. "
                + "Stalled streams, which get no wakes until they answer one or subscribe again: "
                + "\(self.workers.stalled) of \(self.workers.connected), such as that of \(reason)."
        }
        return "The push is due, but no worker subscribed to \(self.device.topic) has a free slot for this device: "
            + "start one (wakegate worker --topic \(self.device.topic) -- COMMAND), or give it more slots."
    }

    /// The task or session in flight that a push waits for.
    private var runningTask: (name: String, deadline: Instant)? {
        for task in self.device.tasks where task.task.kind.lane == .short {
            if case .running(_, _, let deadline, _) = task.state { return (task.name, deadline) }
        }
        return nil
    }

    private var nothingPending: String {
        guard !self.device.isTopicPaused else {
            return "Nothing is pending, and a push that comes now would wait: the topic \(self.device.topic) is paused "
                + "until it is resumed (wakegate topic resume \(self.device.topic))."
        }
        let eligibleAt = self.device.state.eligibleAt(.considerate, self.device.parameters)
        guard eligibleAt > self.now else { return "Nothing is pending, and the next push may launch at once." }
        return "Nothing is pending, and a push of priority 5 that comes now would wait until \(self.time(eligibleAt))."
    }

    private func held(_ code: Hold, _ pending: PendingPush) -> String {
        let conditions = self.device.state.conditions
        switch code {
        case .paused:
            return "The topic \(self.device.topic) is paused, and nothing of it launches by itself: the push waits "
                + "until it is resumed (wakegate topic resume \(self.device.topic))."
        case .forceQuit:
            return "The push is held because the app was force-quit, and launches once appState is reported as "
                + "background or active."
        case .backgroundRefresh:
            return "The push is held because background refresh is \(conditions.backgroundRefresh.rawValue), and "
                + "launches once it is reported as available."
        case .network: return "The push is held because the device has no network, and launches once it reports one."
        case .thermal:
            let way = conditions.thermalState == .serious ? ", or with a push of priority 10" : ""
            return "The push is held because the thermal state is \(conditions.thermalState.rawValue), and launches "
                + "once the device reports that it is cooler\(way)."
        case .battery:
            let critical = JSONNumber.percent(self.device.parameters.criticalBattery)
            return "The push is held because the battery is at \(JSONNumber.percent(conditions.batteryLevel)), below "
                + "the critical \(critical), and not charging; it launches once the device reports more charge or a "
                + "charger, or with a push of priority 10."
        case .priority:
            return "The push has priority 1, which never wakes a device: it launches once the device is active, or "
                + "rides along with a more urgent push."
        case .active, .power, .lowPower, .usage, .worker: return "The push is due, but no worker has a free slot."
        }
    }

    private func waits(until eligibleAt: Instant, _ pending: PendingPush) -> String {
        let spacing = SpacingReasoning(device: self.device, priority: pending.priority, offset: self.offset)
        return "The push waits until \(self.time(eligibleAt))\(spacing.clause(until: eligibleAt))."
    }

    private func time(_ instant: Instant) -> String {
        WallTime.textRoundedUp(self.offset.wall(instant))
    }
}
