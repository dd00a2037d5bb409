package import Engine
import Platform
import Policy
import Storage
import Wire

/// The counters of one topic, or of all: `GET /v1/stats`.
package struct Statistics: Sendable {
    package let counters: ActivityCounters
    /// The numbers of refused pushes, by the index of the reason.
    package let rejected: [Int64]
    package let workers: Dispatcher.WorkerCounts
    /// The start of counting, in milliseconds since 1970.
    let since: Int64
    /// The number of times that limits were reached since the start of the gateway; nil for a topic, which has no
    /// separate counts.
    var limits: [(name: String, count: Int64)]?
    /// The data that was missing when the gateway started; nil for a topic, or if nothing was missing.
    var acceptedLoss: StoreLoss?
    /// The durations of wakes.
    let durations: DurationReport
    /// The counts of the last hour and day, or of the period that was asked for.
    let recent: [(name: StaticString, counts: PeriodCounts)]
    /// The gateways on the same store; nil for a topic, or if the store belongs to a single gateway.
    var cluster: ClusterStatus?

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("pushes")
        self.writePushes(to: &writer)
        writer.key("wakes")
        writer.beginObject()
        writer.key("launched")
        writer.integer(self.counters.launched)
        writer.key("results")
        writer.counts(WakeOutcome.allCases.map { ($0.rawValue, self.counters.results[$0]) })
        writer.endObject()
        writer.key("tasks")
        self.counters.requests.write(results: self.counters.requestResults, to: &writer)
        writer.key("sessions")
        self.counters.sessions.write(results: self.counters.tasks[.urlSession], to: &writer)
        writer.key("workers")
        self.writeWorkers(to: &writer)
        writer.key("devices")
        writer.beginObject()
        writer.key("registered")
        writer.integer(self.counters.registered)
        writer.key("held")
        writer.counts(Hold.ofPushes.map { ("\($0.name)", self.counters.held[$0]) })
        writer.endObject()
        writer.key("pushesPerLaunch")
        writer.number(self.pushesPerLaunch)
        writer.key("durations")
        self.durations.write(to: &writer)
        writer.key("recent")
        self.recent.write(to: &writer)
        if let limits = self.limits {
            writer.key("limits")
            writer.counts(limits)
        }
        if let loss = self.acceptedLoss {
            writer.key("acceptedLoss")
            Self.write(loss, to: &writer)
        }
        self.cluster?.writeMembers(to: &writer)
        writer.key("since")
        writer.string(WallTime.text(self.since))
        writer.endObject()
    }

    private func writeWorkers(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("connected")
        writer.integer(self.workers.connected)
        writer.key("slots")
        writer.integer(self.workers.slots)
        writer.key("busy")
        writer.integer(self.workers.busy)
        self.workers.writeStalls(to: &writer)
        writer.endObject()
    }

    private static func write(_ loss: StoreLoss, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("file")
        writer.string(loss.file)
        writer.key("cause")
        writer.string(loss.summary)
        for (name, count) in [("rows", loss.rows), ("commits", loss.commits)] {
            guard let count else { continue }
            writer.key(name)
            writer.integer(count)
        }
        for (name, moment) in [("since", loss.since), ("until", loss.until)] {
            guard let moment else { continue }
            writer.key(name)
            writer.string(WallTime.text(moment))
        }
        writer.endObject()
    }

    private func writePushes(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("accepted")
        writer.integer(self.counters.accepted)
        writer.key("noWake")
        writer.integer(self.counters.noWake)
        writer.key("rejected")
        writer.counts(APNSReason.allCases.map { ($0.rawValue, self.rejected[$0.index]) })
        writer.key("completed")
        writer.integer(self.counters.completed)
        writer.key("coalesced")
        writer.integer(self.counters.coalesced)
        writer.key("discarded")
        writer.counts(DiscardReason.ofPushes.map { ($0.rawValue, self.counters.discarded[$0]) })
        writer.key("pending")
        writer.integer(self.counters.pending)
        writer.key("inFlight")
        writer.integer(self.counters.inFlight)
        writer.endObject()
    }

    private var pushesPerLaunch: Double {
        guard self.counters.launched > 0 else { return 0 }
        return Double(self.counters.completed + self.counters.coalesced) / Double(self.counters.launched)
    }
}

extension [(name: StaticString, counts: PeriodCounts)] {
    /// Appends an object of periods.
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
    /// Appends the number of stalled streams, and the reason for one of them.
    func writeStalls(to writer: inout JSONWriter) {
        writer.key("stalled")
        writer.integer(self.stalled)
        guard let reason = self.stallReason else { return }
        writer.key("stallReason")
        writer.string(reason)
    }
}

extension TaskCounters {
    /// Appends an object of the counters of requests.
    ///
    /// - `results`: the number of wakes of requests with each result.
    func write(results: (TaskOutcome) -> Int64, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("submitted")
        writer.integer(self.submitted.sum)
        writer.key("refused")
        writer.counts(TaskRefusal.allCases.map { ($0.rawValue, self.refused[$0]) })
        writer.key("replaced")
        writer.integer(self.replaced)
        writer.key("cancelled")
        writer.integer(self.cancelled)
        writer.key("discarded")
        writer.counts(DiscardReason.ofTasks.map { ($0.rawValue, self.discarded[$0]) })
        writer.key("results")
        writer.counts(TaskOutcome.allCases.map { ($0.rawValue, results($0)) })
        writer.key("waiting")
        writer.integer(self.waiting.sum)
        writer.key("inFlight")
        writer.integer(self.inFlight.sum)
        writer.endObject()
    }
}

extension SessionCounters {
    /// Appends an object of the counters of finished transfers.
    ///
    /// - `results`: the number of wakes of sessions with each result.
    func write(results: PerCase<TaskOutcome>, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("finished")
        writer.integer(self.finished)
        writer.key("refused")
        writer.integer(self.refused)
        writer.key("completed")
        writer.integer(self.completed)
        writer.key("discarded")
        writer.counts(DiscardReason.ofTasks.map { ($0.rawValue, self.discarded[$0]) })
        writer.key("results")
        writer.counts(TaskOutcome.allCases.map { ($0.rawValue, results[$0]) })
        writer.key("waiting")
        writer.integer(self.waiting)
        writer.key("inFlight")
        writer.integer(self.inFlight)
        writer.endObject()
    }
}
