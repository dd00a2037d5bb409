package import Engine
import Platform
import Policy
import Storage
import Wire

/// The counters of one topic, or of all topics together: `GET /v1/stats`.
package struct Statistics: Sendable {
    package let counters: ActivityCounters
    /// The number of refused pushes for each reason, in the order of `APNSReason.allCases`.
    package let rejected: [Int64]
    package let workers: Dispatcher.WorkerCounts
    /// The start of counting, in milliseconds since 1970.
    let since: Int64
    /// The number of times that each limit was reached since the start of the gateway; nil for a topic, because limits
    /// are not counted per topic.
    var limits: [(name: String, count: Int64)]?
    /// The data that was missing when the gateway started; nil for a topic, or if nothing was missing.
    var acceptedLoss: StoreLoss?
    /// The durations of wakes.
    let durations: DurationReport
    /// The counts of the last hour and the last day, or of the requested period.
    let recent: [(name: StaticString, counts: PeriodCounts)]
    /// The gateways on the same store; nil for a topic, or if the store belongs to a single gateway.
    var cluster: ClusterStatus?

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        self.writePushes(to: &writer)
        writer.beginObject("wakes")
        writer.member("launched", self.counters.launched)
        writer.member("results", WakeOutcome.allCases.map { ($0.rawValue, self.counters.results[$0]) })
        writer.endObject()
        writer.key("tasks")
        self.counters.requests.write(results: self.counters.requestResults, to: &writer)
        writer.key("sessions")
        self.counters.sessions.write(results: self.counters.tasks[.urlSession], to: &writer)
        writer.beginObject("workers")
        writer.member("connected", self.workers.connected)
        writer.member("slots", self.workers.slots)
        writer.member("busy", self.workers.busy)
        self.workers.writeStalls(to: &writer)
        writer.endObject()
        writer.beginObject("devices")
        writer.member("registered", self.counters.registered)
        writer.member("held", Hold.ofPushes.map { ("\($0.name)", self.counters.held[$0]) })
        writer.endObject()
        writer.member("pushesPerLaunch", self.pushesPerLaunch)
        writer.key("durations")
        self.durations.write(to: &writer)
        writer.key("recent")
        self.recent.write(to: &writer)
        if let limits = self.limits { writer.member("limits", limits) }
        if let loss = self.acceptedLoss {
            writer.beginObject("acceptedLoss")
            writer.member("file", loss.file)
            writer.member("cause", loss.summary)
            writer.member("rows", ifPresent: loss.rows.map { Int64($0) })
            writer.member("commits", ifPresent: loss.commits.map { Int64($0) })
            writer.member("since", ifPresent: loss.since.map { WallTime.text($0) })
            writer.member("until", ifPresent: loss.until.map { WallTime.text($0) })
            writer.endObject()
        }
        self.cluster?.writeMembers(to: &writer)
        writer.member("since", WallTime.text(self.since))
        writer.endObject()
    }

    private func writePushes(to writer: inout JSONWriter) {
        writer.beginObject("pushes")
        writer.member("accepted", self.counters.accepted)
        writer.member("noWake", self.counters.noWake)
        writer.member("rejected", zip(APNSReason.allCases, self.rejected).map { ($0.rawValue, $1) })
        writer.member("completed", self.counters.completed)
        writer.member("coalesced", self.counters.coalesced)
        writer.member("discarded", DiscardReason.ofPushes.map { ($0.rawValue, self.counters.discarded[$0]) })
        writer.member("pending", self.counters.pending)
        writer.member("inFlight", self.counters.inFlight)
        writer.endObject()
    }

    private var pushesPerLaunch: Double {
        guard self.counters.launched > 0 else { return 0 }
        return Double(self.counters.completed + self.counters.coalesced) / Double(self.counters.launched)
    }
}

extension [(name: StaticString, counts: PeriodCounts)] {
    /// Writes an object with a member for each period.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        for (name, counts) in self {
            writer.key(name)
            counts.write(to: &writer)
        }
        writer.endObject()
    }
}

extension Dispatcher.WorkerCounts {
    /// Appends the number of stalled streams to the open object, and the reason why one of them is stalled.
    func writeStalls(to writer: inout JSONWriter) {
        writer.member("stalled", self.stalled)
        writer.member("stallReason", ifPresent: self.stallReason)
    }
}

extension TaskCounters {
    /// Writes the counters of task requests as an object.
    ///
    /// - `results`: returns the number of task wakes with a result.
    func write(results: (TaskOutcome) -> Int64, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("submitted", self.submitted.sum)
        writer.member("refused", TaskRefusal.allCases.map { ($0.rawValue, self.refused[$0]) })
        writer.member("replaced", self.replaced)
        writer.member("cancelled", self.cancelled)
        writer.member("discarded", DiscardReason.ofTasks.map { ($0.rawValue, self.discarded[$0]) })
        writer.member("results", TaskOutcome.allCases.map { ($0.rawValue, results($0)) })
        writer.member("waiting", self.waiting.sum)
        writer.member("inFlight", self.inFlight.sum)
        writer.endObject()
    }
}

extension SessionCounters {
    /// Writes the counters of finished transfers as an object.
    ///
    /// - `results`: the number of session wakes with each result.
    func write(results: PerCase<TaskOutcome>, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("finished", self.finished)
        writer.member("refused", self.refused)
        writer.member("completed", self.completed)
        writer.member("discarded", DiscardReason.ofTasks.map { ($0.rawValue, self.discarded[$0]) })
        writer.member("results", TaskOutcome.allCases.map { ($0.rawValue, results[$0]) })
        writer.member("waiting", self.waiting)
        writer.member("inFlight", self.inFlight)
        writer.endObject()
    }
}

extension SubscriptionRequest {
    /// Writes the wakes that the stream accepts as an object. The object contains the number of devices instead of
    /// their tokens, because tokens are secret.
    func writeTakes(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("pushes", self.takesPushes)
        writer.array("tasks", self.tasks) { $0.string($1.text) }
        writer.array("sessions", self.sessions) { $0.string($1.text) }
        writer.array("resources", self.resources) { $0.string($1) }
        writer.member("devices", self.devices.isEmpty ? nil : self.devices.count)
        writer.endObject()
    }
}

extension StreamSnapshot {
    /// Writes the stream as an object, for a list of topics.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("name", self.label)
        writer.member("slots", self.slots)
        writer.member("busy", self.busy)
        writer.member("state", self.state.rawValue)
        writer.key("takes")
        self.request.writeTakes(to: &writer)
        writer.endObject()
    }
}
