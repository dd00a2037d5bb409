import Engine
import HTTPTransport
import Platform
import Policy
import Wire

/// All metrics of the engine, and the figures of other parts of the gateway.
struct EngineMetrics {
    private let workspace: Workspace
    private let room: RoomState

    init(_ scope: AuthorizedScope) {
        self.workspace = scope.workspace
        self.room = scope.room
    }

    private var engine: DeviceEngine { self.workspace.engine }

    /// Writes all metrics. If the store has failed and its state cannot be read, leaves out the metrics of the state,
    /// because their values would be zero.
    func document(_ figures: GatewayFigures) -> Outcome.Document {
        var text = MetricsText()
        if self.workspace.failure?.durableError == nil {
            self.writePushes(to: &text)
            self.writeWakes(to: &text)
            TaskMetrics(engine: self.engine, dispatcher: self.workspace.dispatcher).write(to: &text)
            self.writeDevices(to: &text)
            self.writeTopics(figures.topics, to: &text)
        }
        self.writeGateway(figures, to: &text)
        figures.process.write(to: &text, startedAt: figures.startedAt)
        return Outcome.Document(kind: .metrics, bytes: text.buffer.view.array)
    }

    private func writePushes(to text: inout MetricsText) {
        let counters = self.engine.totalsShown
        let rejected = self.room.records.rejectionsShown.total
        text.value(.pushesAccepted, counters.accepted)
        text.value(.pushesNoWake, counters.noWake)
        text.values(.pushesRejected, zip(APNSReason.allCases, rejected).map { ($0.rawValue, $1) })
        text.value(.pushesCompleted, counters.completed)
        text.value(.pushesCoalesced, counters.coalesced)
        text.values(.pushesDiscarded, DiscardReason.ofPushes.map { ($0.rawValue, counters.discarded[$0]) })
        text.value(.pushesPending, counters.pending)
        text.value(.pushesInFlight, counters.inFlight)
        text.value(.pushesUnaccounted, counters.accepted - counters.accountedFor)
        text.value(.pushMemory, Int64(self.engine.contentBytes))
        text.value(.pushMemoryMax, Int64(self.engine.configuration.pendingBytesMax))
    }

    private func writeWakes(to text: inout MetricsText) {
        let counters = self.engine.totalsShown
        let times = self.engine.times
        text.value(.wakesLaunched, counters.launched)
        text.values(.wakesEnded, WakeOutcome.allCases.map { ($0.rawValue, counters.results[$0]) })
        text.histogram(.lateness, times.lateness, unitsPerBase: 1000)
        text.histograms(
            .wakeDuration,
            WakeOutcome.allCases.map { ($0.rawValue, times[$0]) },
            unitsPerBase: 1000
        )
        text.fraction(.oldestDue, Double(self.workspace.oldestDueMilliseconds) / 1000)
    }

    private func writeDevices(to text: inout MetricsText) {
        let counters = self.engine.totalsShown
        text.value(.devicesRegistered, counters.registered)
        text.values(.devicesHeld, Hold.ofPushes.map { ("\($0.name)", counters.held[$0]) })
        text.value(.devicesWithoutWorker, self.devicesWithoutWorker)
        let workers = self.workspace.workerCounts(nil)
        text.value(.workersConnected, Int64(workers.connected))
        text.value(.workersStalled, Int64(workers.stalled))
        text.value(.workerSlots, Int64(workers.slots))
        text.value(.workerSlotsBusy, Int64(workers.busy))
        text.values(.webhooks, WebhookState.names.map { ($0, self.webhookCount($0)) })
        text.value(.topics, Int64(self.engine.topicCount))
    }

    private var devicesWithoutWorker: Int64 {
        (0..<UInt32(self.engine.topicCount)).reduce(into: 0) { sum, number in
            let topic = TopicIndex(rawValue: number)
            let count = self.workspace.readyCount(topic)
            if count > 0, self.workspace.workerCounts(topic).connected == 0 { sum += Int64(count) }
        }
    }

    private func webhookCount(_ state: String) -> Int64 {
        Int64(self.room.webhooks.values.count { $0.state.name == state })
    }

    /// Writes the metrics of the topics in the configuration, and the totals of all other topics.
    private func writeTopics(_ names: [String], to text: inout MetricsText) {
        var rest = self.engine.totalsShown
        var workers = self.workspace.workerCounts(nil).connected
        var rows: [(name: String, counters: ActivityCounters, workers: Int)] = []
        var durations = self.workspace.dispatcher.pushDurations
        var durationRows: [(label: String, DurationCounts)] = []
        for name in names.sorted() {
            let topic = name.withByteView { self.engine.findTopic($0) }
            let counters = topic.map { self.engine.countersShown($0) } ?? ActivityCounters()
            let connected = topic.map { self.workspace.workerCounts($0).connected } ?? 0
            rest.accepted -= counters.accepted
            rest.launched -= counters.launched
            rest.pending -= counters.pending
            workers -= connected
            rows.append((name, counters, connected))
            durationRows.append((name, topic.flatMap { durations.removeValue(forKey: $0) } ?? DurationCounts()))
        }
        durationRows.append((Metric.otherTopics, durations.values.reduce(into: DurationCounts()) { $0 += $1 }))
        rows.append((Metric.otherTopics, rest, workers))
        text.values(.topicPushesAccepted, rows.map { ($0.name, $0.counters.accepted) })
        text.values(.topicWakesLaunched, rows.map { ($0.name, $0.counters.launched) })
        text.values(.topicPushesPending, rows.map { ($0.name, $0.counters.pending) })
        text.values(.topicWorkersConnected, rows.map { ($0.name, Int64($0.workers)) })
        text.histograms(.topicWakeDuration, durationRows)
    }

    private func writeGateway(_ figures: GatewayFigures, to text: inout MetricsText) {
        let times = self.room.commitTimes()
        text.histogram(.commitDuration, times.commits, unitsPerBase: 1_000_000)
        text.histogram(.commitPushes, times.pushes, unitsPerBase: 1)
        text.histogram(.admitToDurable, times.admitToDurable, unitsPerBase: 1_000_000)
        text.value(.storeFailed, self.workspace.failure.map { $0.isPassing ? 0 : 1 } ?? 0)
        text.value(.lossAccepted, self.room.records.acceptedLoss == nil ? 0 : 1)
        self.writeCluster(to: &text)
        text.values(.limitsMet, self.room.limits.all(self.workspace.dispatcher).map { ($0.name, $0.count) })
        text.values(.connections, figures.connections.map { ("\($0.role)", Int64($0.count)) })
        text.value(.draining, self.room.isDraining ? 1 : 0)
        if let expiry = figures.certificateExpiry { text.value(.certificateExpiry, expiry) }
        text.value(.countingSince, self.room.records.countingSince / 1000)
        text.values(.buildInfo, [(wakeGateVersion, 1)])
    }
}

extension EngineMetrics {
    /// Writes the metrics about the gateways on the store. A gateway with its own store is shown as one attached
    /// gateway without differences.
    private func writeCluster(to text: inout MetricsText) {
        let status = self.workspace.remote.map { $0.status ?? ClusterStatus(nil, own: nil) }
        let isAttached = self.workspace.failure.map { !$0.isPassing } ?? true
        text.value(.clusterAttached, isAttached ? 1 : 0)
        text.value(.clusterGateways, status.map { Int64($0.gateways.count) } ?? 1)
        text.fraction(.clusterLag, Double(status?.lag ?? 0) / 1000)
        text.value(.clusterDiffers, Int64(status?.differences.count ?? 0))
        let locks = self.workspace.remote?.locks ?? []
        text.values(.clusterLocked, locks.map { ($0.session, Int64($0.deviceCount)) })
    }
}

extension ProcessFigures {
    /// - `startedAt`: the start of the gateway, in milliseconds since 1970.
    func write(to text: inout MetricsText, startedAt: Int64) {
        text.value(.residentMemory, self.residentBytes)
        text.value(.openDescriptors, self.openDescriptors)
        text.value(.maxDescriptors, self.descriptorsMax)
        text.fraction(.processorTime, self.processorSeconds)
        text.fraction(.startTime, Double(startedAt) / 1000)
    }
}

/// All metrics of background tasks and sessions.
struct TaskMetrics {
    let engine: DeviceEngine
    let dispatcher: Dispatcher

    /// Writes all metrics in the order of `Metric.ofTasks`.
    func write(to text: inout MetricsText) {
        self.writeRequests(to: &text)
        self.writeSessions(to: &text)
        self.writeWakes(to: &text)
    }

    private func writeRequests(to text: inout MetricsText) {
        let counters = self.engine.totalsShown
        let requests = counters.requests
        text.values(.tasksSubmitted, Self.byKind(requests.submitted))
        text.values(.tasksRefused, TaskRefusal.allCases.map { ($0.rawValue, requests.refused[$0]) })
        text.value(.tasksReplaced, requests.replaced)
        text.value(.tasksCancelled, requests.cancelled)
        text.values(.tasksDiscarded, Self.byReason(requests.discarded))
        text.values(.tasksWaiting, Self.byKind(requests.waiting))
        text.values(.tasksInFlight, Self.byKind(requests.inFlight))
        text.value(.tasksStalled, Int64(self.dispatcher.stalledTaskCount))
        text.value(.taskProgressReports, self.dispatcher.progressReports)
        text.values(.tasksHeld, Hold.ofTasks.map { ("\($0.name)", requests.held[$0]) })
        text.value(.tasksUnaccounted, requests.submitted.sum - counters.requestsAccountedFor)
        text.value(.taskMemory, Int64(self.engine.taskBytes))
        text.value(.taskMemoryMax, Int64(self.engine.configuration.taskBytesMax))
    }

    private func writeSessions(to text: inout MetricsText) {
        let sessions = self.engine.totalsShown.sessions
        text.value(.sessionsFinished, sessions.finished)
        text.value(.sessionsRefused, sessions.refused)
        text.value(.sessionsCompleted, sessions.completed)
        text.values(.sessionsDiscarded, Self.byReason(sessions.discarded))
        text.value(.sessionsWaiting, sessions.waiting)
        text.value(.sessionsInFlight, sessions.inFlight)
        text.value(.sessionsUnaccounted, sessions.finished - sessions.accountedFor)
    }

    private func writeWakes(to text: inout MetricsText) {
        let counters = self.engine.totalsShown.tasks
        let times = self.engine.times
        text.values(.taskWakesLaunched, TaskKind.allCases.map { ($0.rawValue, counters.launched[$0]) })
        text.values(
            .taskWakesEnded,
            byLabels: TaskKind.allCases.flatMap { kind in
                TaskOutcome.allCases.map { ([kind.rawValue, $0.rawValue], counters[kind][$0]) }
            }
        )
        text.histograms(
            .taskWakeDuration,
            TaskKind.allCases.map { ($0.rawValue, times[$0]) },
            unitsPerBase: 1000
        )
    }

    private static func byKind(_ counts: PerCase<TaskKind>) -> [(label: String, value: Int64)] {
        TaskKind.requestable.map { ($0.rawValue, counts[$0]) }
    }

    private static func byReason(_ counts: PerCase<DiscardReason>) -> [(label: String, value: Int64)] {
        DiscardReason.ofTasks.map { ($0.rawValue, counts[$0]) }
    }
}
