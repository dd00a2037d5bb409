import Engine
import Platform
import Policy
package import Wire

// MARK: - Pushes

extension GatewayMetric {
    private static let ofPushes: [GatewayMetric] = [
        .counter(
            "wakegate_pushes_accepted_total",
            "Pushes that entered the launch policy, without those that cause no wake."
        ) { .one($0.totals.accepted) },
        .counter("wakegate_pushes_no_wake_total", "Pushes answered 200 whose payload causes no wake.") {
            .one($0.totals.noWake)
        },
        .counter("wakegate_pushes_rejected_total", by: ["reason"], "Pushes refused, by the reason in the answer.") {
            .each(zip(APNSReason.allCases, $0.room.records.rejectionsShown.total).map { ($0.rawValue, $1) })
        },
        .counter("wakegate_pushes_completed_total", "Pushes whose wake a worker handled.") {
            .one($0.totals.completed)
        },
        .counter("wakegate_pushes_coalesced_total", "Pushes merged into a newer one for the same device.") {
            .one($0.totals.coalesced)
        },
        .counter("wakegate_pushes_discarded_total", by: ["reason"], "Accepted pushes that were dropped, by reason.") {
            .each($0.totals.discarded.named(DiscardReason.ofPushes))
        },
        .gauge("wakegate_pushes_pending", "Pushes that wait for their launch.") { .one($0.totals.pending) },
        .gauge("wakegate_pushes_in_flight", "Pushes whose wake is at a worker.") { .one($0.totals.inFlight) },
        .gauge(
            "wakegate_pushes_unaccounted",
            "Accepted pushes less those completed, coalesced, discarded, pending and in flight; anything but 0 "
                + "is a bug."
        ) { .one($0.totals.accepted - $0.totals.accountedFor) },
        .gauge("wakegate_push_memory_bytes", "Memory of the pushes that wait or are in flight.") {
            .one(Int64($0.engine.contentBytes))
        },
        .gauge("wakegate_push_memory_max_bytes", "The maximum of that memory: limits.pendingBytesMax.") {
            .one(Int64($0.engine.configuration.pendingBytesMax))
        },
    ]
}

// MARK: - Wakes

extension GatewayMetric {
    private static let ofWakes: [GatewayMetric] = [
        .counter("wakegate_wakes_launched_total", "Launched wakes of pushes, and an operator's empty ones.") {
            .one($0.totals.launched)
        },
        .counter("wakegate_wakes_ended_total", by: ["result"], "Wakes of pushes that ended, by result.") {
            .each($0.totals.results.named(WakeOutcome.allCases))
        },
        .histogram(
            "wakegate_launch_lateness_seconds",
            "Time that a launch of a push or a task waited for a free worker slot after the policy had permitted it."
        ) { .histograms([(nil, $0.engine.times.lateness)], unitsPerBase: 1000) },
        .histogram(
            "wakegate_wake_duration_seconds",
            by: ["result"],
            "Time from the launch of a push's wake to its end, by result."
        ) { state in .histograms(WakeOutcome.allCases.map { ($0.rawValue, state.engine.times[$0]) }, unitsPerBase: 1000)
        },
        .gauge(
            "wakegate_oldest_due_age_seconds",
            "The longest time for which a due launch has waited; 0 when none is due."
        ) { .fraction(Double($0.workspace.oldestDueMilliseconds) / 1000) },
    ]
}

// MARK: - Requests of background tasks

extension GatewayMetric {
    private static let ofTasks: [GatewayMetric] = [
        .counter(
            "wakegate_tasks_submitted_total",
            by: ["kind"],
            "Requests of background tasks that were accepted, by kind."
        ) { .each($0.totals.requests.submitted.named(TaskKind.requestable)) },
        .counter(
            "wakegate_tasks_refused_total",
            by: ["reason"],
            "Requests that the policy refused, by the reason in the answer."
        ) { .each($0.totals.requests.refused.named(TaskRefusal.allCases)) },
        .counter("wakegate_tasks_replaced_total", "Requests that a newer request with the same identifier replaced.") {
            .one($0.totals.requests.replaced)
        },
        .counter("wakegate_tasks_cancelled_total", "Requests that were cancelled while they waited.") {
            .one($0.totals.requests.cancelled)
        },
        .counter("wakegate_tasks_discarded_total", by: ["reason"], "Requests that were dropped, by reason.") {
            .each($0.totals.requests.discarded.named(DiscardReason.ofTasks))
        },
        .gauge("wakegate_tasks_waiting", by: ["kind"], "Requests that wait for their launch, by kind.") {
            .each($0.totals.requests.waiting.named(TaskKind.requestable))
        },
        .gauge("wakegate_tasks_in_flight", by: ["kind"], "Requests whose wake is at a worker, by kind.") {
            .each($0.totals.requests.inFlight.named(TaskKind.requestable))
        },
        .gauge(
            "wakegate_tasks_stalled",
            "Continued tasks on streams of this gateway that have not advanced for 15 seconds."
        ) { .one(Int64($0.workspace.dispatcher.stalledTaskCount)) },
        .counter(
            "wakegate_task_progress_reports_total",
            "Progress reports of continued tasks that this gateway has accepted since its start."
        ) { .one($0.workspace.dispatcher.progressReports) },
        .gauge(
            "wakegate_tasks_held",
            by: ["reason"],
            "Requests that wait and are held, by the first hold that applies."
        ) { .each($0.totals.requests.held.named(Hold.ofTasks)) },
        .gauge(
            "wakegate_tasks_unaccounted",
            "Requests less those replaced, cancelled, discarded, ended, waiting and in flight; anything but 0 is a bug."
        ) { .one($0.totals.requests.submitted.sum - $0.totals.requestsAccountedFor) },
        .gauge(
            "wakegate_task_memory_bytes",
            "Memory of the names and titles of waiting and running tasks and sessions, and of event ids."
        ) { .one(Int64($0.engine.taskBytes)) },
        .gauge("wakegate_task_memory_max_bytes", "The maximum of that memory: limits.taskBytesMax.") {
            .one(Int64($0.engine.configuration.taskBytesMax))
        },
    ]
}

// MARK: - Finished transfers of background sessions

extension GatewayMetric {
    private static let ofSessions: [GatewayMetric] = [
        .counter(
            "wakegate_sessions_finished_total",
            "Finished transfers of background sessions whose reports were accepted."
        ) { .one($0.totals.sessions.finished) },
        .counter(
            "wakegate_sessions_refused_total",
            "Finished transfers that were refused because too many sessions waited."
        ) { .one($0.totals.sessions.refused) },
        .counter("wakegate_sessions_completed_total", "Finished transfers whose wake a worker handled.") {
            .one($0.totals.sessions.completed)
        },
        .counter(
            "wakegate_sessions_discarded_total",
            by: ["reason"],
            "Finished transfers that were dropped, by reason."
        ) { .each($0.totals.sessions.discarded.named(DiscardReason.ofTasks)) },
        .gauge("wakegate_sessions_waiting", "Finished transfers that wait for the wake of their session.") {
            .one($0.totals.sessions.waiting)
        },
        .gauge("wakegate_sessions_in_flight", "Finished transfers whose session's wake is at a worker.") {
            .one($0.totals.sessions.inFlight)
        },
        .gauge(
            "wakegate_sessions_unaccounted",
            "Finished transfers less those completed, discarded, waiting and in flight; anything but 0 is a bug."
        ) { .one($0.totals.sessions.finished - $0.totals.sessions.accountedFor) },
    ]
}

// MARK: - Wakes of tasks and sessions

extension GatewayMetric {
    private static let ofTaskWakes: [GatewayMetric] = [
        .counter("wakegate_task_wakes_launched_total", by: ["kind"], "Wakes of tasks and sessions launched, by kind.") {
            .each($0.totals.tasks.launched.named(TaskKind.allCases))
        },
        .counter(
            "wakegate_task_wakes_ended_total",
            by: ["kind", "result"],
            "Wakes of tasks and sessions that ended, by kind and result."
        ) { state in
            .combined(
                TaskKind.allCases.flatMap { kind in
                    TaskOutcome.allCases.map { ([kind.rawValue, $0.rawValue], state.totals.tasks[kind][$0]) }
                }
            )
        },
        .histogram(
            "wakegate_task_wake_duration_seconds",
            by: ["kind"],
            "Time from the launch of a wake of a task or session to its end, by kind."
        ) { state in .histograms(TaskKind.allCases.map { ($0.rawValue, state.engine.times[$0]) }, unitsPerBase: 1000) },
    ]
}

// MARK: - Devices and workers

extension GatewayMetric {
    private static let ofWorkers: [GatewayMetric] = [
        .gauge("wakegate_devices_registered", "Registered devices.") { .one($0.totals.registered) },
        .gauge(
            "wakegate_devices_held",
            by: ["reason"],
            "Devices with a pending push that is held, by the first hold that applies."
        ) { .each($0.totals.held.named(Hold.ofPushes)) },
        .gauge(
            "wakegate_devices_without_worker",
            "Devices with a push that could launch, in topics without a subscribed worker."
        ) { .one($0.devicesWithoutWorker) },
        .gauge("wakegate_workers_connected", "Workers' streams and webhooks.") { .one(Int64($0.workers.connected)) },
        .gauge(
            "wakegate_workers_stalled",
            "Streams of this gateway that get no wakes because three in a row expired or were returned."
        ) { .one(Int64($0.workers.stalled)) },
        .gauge("wakegate_worker_slots", "The number of slots of all workers.") { .one(Int64($0.workers.slots)) },
        .gauge("wakegate_worker_slots_busy", "The number of slots in use.") { .one(Int64($0.workers.busy)) },
        .gauge("wakegate_webhooks", by: ["state"], "Webhooks by state.") { state in
            .each(WebhookState.names.map { ($0, state.webhookCount($0)) })
        },
        .gauge("wakegate_topics", "Topics that a device, a worker or the configuration named.") {
            .one(Int64($0.engine.topicCount))
        },
    ]
}

// MARK: - Topics that the configuration names

extension GatewayMetric {
    private static let ofTopics: [GatewayMetric] = [
        .counter(
            "wakegate_topic_pushes_accepted_total",
            by: ["topic"],
            "Accepted pushes by topic; (other) is every topic that the configuration does not name."
        ) { .each($0.topics.map { ($0.name, $0.counters.accepted) }) },
        .counter(
            "wakegate_topic_wakes_launched_total",
            by: ["topic"],
            "Launched wakes of pushes by topic; (other) is every topic that the configuration does not name."
        ) { .each($0.topics.map { ($0.name, $0.counters.launched) }) },
        .gauge(
            "wakegate_topic_pushes_pending",
            by: ["topic"],
            "Pushes that wait for their launch, by topic; (other) is every topic that the configuration does not name."
        ) { .each($0.topics.map { ($0.name, $0.counters.pending) }) },
        .gauge(
            "wakegate_topic_workers_connected",
            by: ["topic"],
            "Workers' streams and webhooks by topic; (other) is every topic that the configuration does not name."
        ) { .each($0.topics.map { ($0.name, Int64($0.workers)) }) },
        .histogram(
            "wakegate_topic_wake_duration_seconds",
            by: ["topic"],
            "Time from the launch of a push's wake to its worker's answer or its deadline, by configured topic "
                + "or (other)."
        ) { .durations($0.topics.map { ($0.name, $0.durations) }) },
    ]
}

// MARK: - Commits

extension GatewayMetric {
    private static let ofStore: [GatewayMetric] = [
        .histogram("wakegate_commit_duration_seconds", "Time that a commit of the journal took, its sync included.") {
            .histograms([(nil, $0.commitTimes.commits)], unitsPerBase: 1_000_000)
        },
        .histogram("wakegate_commit_batch_pushes", "Pushes that one commit made durable together.") {
            .histograms([(nil, $0.commitTimes.pushes)], unitsPerBase: 1)
        },
        .histogram(
            "wakegate_push_admit_to_durable_seconds",
            "Time from the moment a checked push leaves its loop until its commit is durable."
        ) { .histograms([(nil, $0.commitTimes.admitToDurable)], unitsPerBase: 1_000_000) },
        .gauge(
            "wakegate_store_failed",
            "1 after a commit has failed: the gateway accepts nothing more until a restart."
        ) { .one($0.workspace.failure.map { $0.isPassing ? 0 : 1 } ?? 0) },
        .gauge(
            "wakegate_loss_accepted",
            "1 if the gateway started despite losses of its journal (--accept-loss), until its next start."
        ) { .one($0.room.records.acceptedLoss == nil ? 0 : 1) },
    ]
}

// MARK: - The gateways on the same database

extension GatewayMetric {
    private static let ofCluster: [GatewayMetric] = [
        .gauge("wakegate_cluster_attached", "1 while the gateway can use its store, 0 while it waits for its database.")
        { .one($0.workspace.failure?.isPassing == true ? 0 : 1) },
        .gauge(
            "wakegate_cluster_gateways",
            "Live gateways on the same database, including this one; 1 for an embedded store."
        ) { .one($0.cluster.map { Int64($0.gateways.count) } ?? 1) },
        .gauge("wakegate_cluster_lag_seconds", "The longest time since a gateway on the same database last reported.") {
            .fraction(Double($0.cluster?.lag ?? 0) / 1000)
        },
        .gauge(
            "wakegate_cluster_configuration_differs",
            "Keys of the configuration that differ between gateways on the same database and should not."
        ) { .one(Int64($0.cluster?.differences.count ?? 0)) },
        .gauge(
            "wakegate_cluster_locked_devices",
            by: ["session"],
            "Devices whose commands wait because another session of the database, which the label names, has "
                + "locked them."
        ) { .each(($0.workspace.remote?.locks ?? []).map { ($0.session, Int64($0.deviceCount)) }) },
        .gauge(
            "wakegate_cluster_unreadable_devices",
            "Devices whose rows in the database were damaged when this gateway read them in the last minute."
        ) { .one(Int64($0.workspace.remote?.unreadable.count ?? 0)) },
    ]
}

// MARK: - The gateway

extension GatewayMetric {
    private static let ofGateway: [GatewayMetric] = [
        .counter(
            "wakegate_limits_met_total",
            by: ["limit"],
            "The number of times that a limit had an effect, by its key in the configuration."
        ) { .each($0.room.limits.all($0.workspace.dispatcher).map { ($0.name, $0.count) }) },
        .gauge("wakegate_connections", by: ["listener"], "Open connections, by listener.") {
            .each($0.figures.connections.map { ("\($0.role)", Int64($0.count)) })
        },
        .gauge("wakegate_draining", "1 while the gateway shuts down.") { .one($0.room.isDraining ? 1 : 0) },
        .gauge(
            "wakegate_certificate_expiry_timestamp_seconds",
            "The expiry of the edge's certificate, in seconds since 1970; absent without an edge."
        ) { $0.figures.certificateExpiry.map { .one($0) } ?? .absent },
        .gauge(
            "wakegate_counting_since_timestamp_seconds",
            "When the counters of pushes, tasks and wakes began, in seconds since 1970."
        ) { .one($0.room.records.countingSince / 1000) },
        .gauge("wakegate_build_info", by: ["version"], "Always 1; its label is the version.") { _ in
            .each([(label: wakeGateVersion, value: Int64(1))])
        },
    ]
}

// MARK: - The process

extension GatewayMetric {
    private static let ofProcess: [GatewayMetric] = [
        .gauge("wakegate_process_resident_memory_bytes", "Memory of the process that is not swapped out.") {
            .one($0.figures.process.residentBytes)
        },
        .gauge("wakegate_process_open_fds", "Open file descriptors.") { .one($0.figures.process.openDescriptors) },
        .gauge("wakegate_process_max_fds", "The limit on open file descriptors.") {
            .one($0.figures.process.descriptorsMax)
        },
        .counter("wakegate_process_cpu_seconds_total", "Processor time that the process has used.") {
            .fraction($0.figures.process.processorSeconds)
        },
        .gauge("wakegate_process_start_time_seconds", "When the gateway started, in seconds since 1970.") {
            .fraction(Double($0.figures.startedAt) / 1000)
        },
    ]
}

// MARK: - All metrics

extension GatewayMetric {
    /// The metrics of the stored state, in the order of the output.
    static let ofState = ofPushes + ofWakes + ofTasks + ofSessions + ofTaskWakes + ofWorkers + ofTopics
    /// The metrics that do not depend on the stored state. They follow those of the state.
    static let ofRuntime = ofStore + ofCluster + ofGateway + ofProcess
}

extension Metric {
    /// All metrics, in the order of the output.
    package static let all: [Metric] = (GatewayMetric.ofState + GatewayMetric.ofRuntime).map(\.metric)
}
