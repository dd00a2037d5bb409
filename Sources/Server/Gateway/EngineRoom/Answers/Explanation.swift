import Engine
import Policy
import Wire

/// Everything the policy knows about one device: `GET /v1/devices/<token>`.
package struct Explanation {
    /// The maximum number of recent events in an explanation.
    static let recentMax = 32

    let device: DeviceSnapshot
    /// The status of the topic's webhook; nil if the topic has none.
    let webhook: WebhookStatus?
    /// The workers of the device's topic.
    let workers: Dispatcher.WorkerCounts
    /// The launch policy in effect.
    let policy: PolicyVersions.Version?
    let now: Instant
    let offset: WallOffset

    /// Appends all members to the open object, except the recent events, which only the history can provide.
    func writeMembers(to writer: inout JSONWriter) {
        let state = self.device.state
        writer.hex("token") { self.device.token.writeHex(to: &$0) }
        writer.member("topic", self.device.topic)
        writer.member("registeredAt", self.device.isRegistered ? self.device.registrationChangedAt : nil, self.offset)
        writer.key("conditions")
        state.conditions.write(to: &writer)
        writer.member("pending", state.pending) { writer, pending in
            writer.beginObject()
            self.writePush(pending, self.device.pendingID, to: &writer)
            writer.endObject()
        }
        writer.member("inFlight", state.inFlight) { writer, inFlight in self.writeInFlight(inFlight, to: &writer) }
        writer.member("lastLaunchAt", state.spacing.lastLaunch, self.offset)
        writer.member("penalty", state.penalty)
        writer.member("launchesInWindow", self.batchEnd == nil ? 0 : state.spacing.windowCount)
        writer.member("windowEndsAt", self.batchEnd, self.offset)
        let eligibleAt = state.eligibleAt(state.pending?.priority ?? .considerate, self.device.parameters)
        writer.member("nextEligibleAt", eligibleAt, self.offset)
        writer.array("held", self.device.held) { $0.string($1.name) }
        writer.key("tasks")
        TaskList(device: self.device, offset: self.offset).write(to: &writer)
        writer.beginObject("usage")
        writer.member("lastUse", self.device.usage.last, self.offset)
        writer.array("habitualHours", self.device.usage.habitualHours) { $0.integer($1) }
        writer.endObject()
        writer.member("policyVersion", self.policy?.number)
        writer.member("policySince", self.policy?.since, self.offset)
        let reasoning = Reasoning(device: self.device, offset: self.offset)
        writer.member("why", reasoning.push(self.webhook, self.workers, at: self.now))
    }

    /// The end of the current budget window; nil if it has passed.
    private var batchEnd: Instant? {
        let end = self.device.state.spacing.windowStart + self.device.parameters.budgetWindow
        return end > self.now ? end : nil
    }

    private func writePush(_ push: PendingPush, _ apnsID: APNsID?, to writer: inout JSONWriter) {
        writer.member("apnsID", apnsID)
        writer.member("priority", push.priority.rawValue)
        writer.member("receivedAt", push.receivedAt, self.offset)
        writer.member("firstReceivedAt", push.firstReceivedAt, self.offset)
        writer.member("expiresAt", push.expiry, self.offset)
        writer.member("attempts", push.attempts)
        writer.member("coalesced", push.coalesced)
    }

    private func writeInFlight(_ inFlight: WakeInFlight, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("wake", self.device.wake) { writer, wake in writer.hex { wake.write(to: &$0) } }
        self.writePush(inFlight.push, self.device.inFlightID, to: &writer)
        writer.member("launchedAt", inFlight.launchedAt, self.offset)
        writer.member("deadline", inFlight.deadline, self.offset)
        writer.endObject()
    }
}

extension DeviceSnapshot {
    /// Writes the device as an entry in a list of devices.
    func writeEntry(to writer: inout JSONWriter, _ offset: WallOffset) {
        let state = self.state
        let push = state.inFlight?.push ?? state.pending
        writer.beginObject()
        writer.hex("token") { self.token.writeHex(to: &$0) }
        writer.member("topic", self.topic)
        writer.member("state", self.pushState.rawValue)
        writer.array("held", self.held) { $0.string($1.name) }
        let pending = self.held.isEmpty ? state.pending : nil
        writer.member("eligibleAt", pending.map { state.eligibleAt($0.priority, self.parameters) }, offset)
        writer.member("lastLaunchAt", state.spacing.lastLaunch, offset)
        writer.member("coalesced", push?.coalesced ?? 0)
        writer.member("receivedAt", push?.receivedAt, offset)
        let waitingSince = state.pending?.firstReceivedAt ?? state.inFlight?.push.firstReceivedAt
        writer.member("waitingSince", waitingSince, offset)
        writer.endObject()
    }
}
