package import Engine
package import Policy
import Wire

/// Everything the policy knows about one device: `GET /v1/devices/<token>`.
package struct Explanation {
    /// The maximum number of recent events in an explanation.
    static let recentMax = 32

    let device: DeviceSnapshot
    /// The state of the webhook of its topic; nil if it has none.
    let webhook: WebhookStatus?
    /// The workers of its topic.
    let workers: Dispatcher.WorkerCounts
    /// The launch policy in effect.
    let policy: PolicyVersions.Version?
    let now: Instant
    let offset: WallOffset

    package init(
        device: DeviceSnapshot,
        webhook: WebhookStatus?,
        workers: Dispatcher.WorkerCounts,
        policy: PolicyVersions.Version?,
        now: Instant,
        offset: WallOffset
    ) {
        self.device = device
        self.webhook = webhook
        self.workers = workers
        self.policy = policy
        self.now = now
        self.offset = offset
    }

    /// Appends the members of an object, except the recent events, which only the history knows.
    func writeMembers(to writer: inout JSONWriter) {
        let state = self.device.state
        writer.key("token")
        writer.hex { self.device.token.writeHex(to: &$0) }
        writer.key("topic")
        writer.string(self.device.topic)
        writer.key("registeredAt")
        writer.moment(self.device.isRegistered ? self.device.registrationChangedAt : nil, self.offset)
        writer.key("conditions")
        state.conditions.write(to: &writer)
        writer.key("pending")
        writer.optional(state.pending) { writer, pending in
            writer.beginObject()
            self.writePush(pending, self.device.pendingID, to: &writer)
            writer.endObject()
        }
        writer.key("inFlight")
        writer.optional(state.inFlight) { writer, inFlight in self.writeInFlight(inFlight, to: &writer) }
        writer.key("lastLaunchAt")
        writer.moment(state.spacing.lastLaunch, self.offset)
        writer.key("penalty")
        writer.integer(state.penalty)
        writer.key("launchesInWindow")
        writer.integer(self.batchEnd == nil ? 0 : state.spacing.windowCount)
        writer.key("windowEndsAt")
        writer.moment(self.batchEnd, self.offset)
        writer.key("nextEligibleAt")
        writer.moment(state.eligibleAt(state.pending?.priority ?? .considerate, self.device.parameters), self.offset)
        writer.key("held")
        writer.beginArray()
        for code in self.device.held { writer.string(code.name) }
        writer.endArray()
        writer.key("tasks")
        TaskList(device: self.device, offset: self.offset).write(to: &writer)
        writer.key("usage")
        self.writeUsage(to: &writer)
        writer.key("policyVersion")
        writer.optional(self.policy) { writer, policy in writer.integer(policy.number) }
        writer.key("policySince")
        writer.moment(self.policy?.since, self.offset)
        writer.key("why")
        let reasoning = Reasoning(device: self.device, offset: self.offset)
        writer.string(reasoning.push(self.webhook, self.workers, at: self.now))
    }

    private func writeUsage(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("lastUse")
        writer.moment(self.device.usage.last, self.offset)
        writer.key("habitualHours")
        writer.beginArray()
        for hour in self.device.usage.habitualHours { writer.integer(hour) }
        writer.endArray()
        writer.endObject()
    }

    /// The end of the current budget window.
    private var batchEnd: Instant? {
        let end = self.device.state.spacing.windowStart + self.device.parameters.budgetWindow
        return end > self.now ? end : nil
    }

    private func writePush(_ push: PendingPush, _ apnsID: APNsID?, to writer: inout JSONWriter) {
        writer.key("apnsID")
        writer.optional(apnsID) { writer, apnsID in writer.hex { apnsID.write(to: &$0) } }
        writer.key("priority")
        writer.integer(push.priority.rawValue)
        writer.key("receivedAt")
        writer.moment(push.receivedAt, self.offset)
        writer.key("firstReceivedAt")
        writer.moment(push.firstReceivedAt, self.offset)
        writer.key("expiresAt")
        writer.moment(push.expiry, self.offset)
        writer.key("attempts")
        writer.integer(push.attempts)
        writer.key("coalesced")
        writer.integer(push.coalesced)
    }

    private func writeInFlight(_ inFlight: WakeInFlight, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("wake")
        writer.optional(self.device.wake) { writer, wake in writer.hex { wake.write(to: &$0) } }
        self.writePush(inFlight.push, self.device.inFlightID, to: &writer)
        writer.key("launchedAt")
        writer.moment(inFlight.launchedAt, self.offset)
        writer.key("deadline")
        writer.moment(inFlight.deadline, self.offset)
        writer.endObject()
    }
}

/// A device in a list of devices.
struct DeviceLine {
    let device: DeviceSnapshot
    let offset: WallOffset

    /// Appends an object.
    func write(to writer: inout JSONWriter) {
        let state = self.device.state
        let push = state.inFlight?.push ?? state.pending
        writer.beginObject()
        writer.key("token")
        writer.hex { self.device.token.writeHex(to: &$0) }
        writer.key("topic")
        writer.string(self.device.topic)
        writer.key("state")
        writer.string(self.device.pushState.rawValue)
        writer.key("held")
        writer.beginArray()
        for code in self.device.held { writer.string(code.name) }
        writer.endArray()
        writer.key("eligibleAt")
        let isTimed = state.pending != nil && self.device.held.isEmpty
        writer.moment(isTimed ? self.eligibleAt : nil, self.offset)
        writer.key("lastLaunchAt")
        writer.moment(state.spacing.lastLaunch, self.offset)
        writer.key("coalesced")
        writer.integer(push?.coalesced ?? 0)
        writer.key("receivedAt")
        writer.moment(push?.receivedAt, self.offset)
        writer.key("waitingSince")
        writer.moment(state.pending?.firstReceivedAt ?? state.inFlight?.push.firstReceivedAt, self.offset)
        writer.endObject()
    }

    private var eligibleAt: Instant {
        let priority = self.device.state.pending?.priority ?? .considerate
        return self.device.state.eligibleAt(priority, self.device.parameters)
    }
}
