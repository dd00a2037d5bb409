package import Wire

// MARK: - Pushes

extension Metric {
    static let pushesAccepted = Metric(
        "wakegate_pushes_accepted_total",
        .counter,
        "Pushes that entered the launch policy, without those that cause no wake."
    )
    static let pushesNoWake = Metric(
        "wakegate_pushes_no_wake_total",
        .counter,
        "Pushes answered 200 whose payload causes no wake."
    )
    static let pushesRejected = Metric(
        "wakegate_pushes_rejected_total",
        .counter,
        by: ["reason"],
        "Pushes refused, by the reason in the answer."
    )
    static let pushesCompleted = Metric(
        "wakegate_pushes_completed_total",
        .counter,
        "Pushes whose wake a worker handled."
    )
    static let pushesCoalesced = Metric(
        "wakegate_pushes_coalesced_total",
        .counter,
        "Pushes merged into a newer one for the same device."
    )
    static let pushesDiscarded = Metric(
        "wakegate_pushes_discarded_total",
        .counter,
        by: ["reason"],
        "Accepted pushes that were dropped, by reason."
    )
    static let pushesPending = Metric("wakegate_pushes_pending", .gauge, "Pushes that wait for their launch.")
    static let pushesInFlight = Metric("wakegate_pushes_in_flight", .gauge, "Pushes whose wake is at a worker.")
    static let pushesUnaccounted = Metric(
        "wakegate_pushes_unaccounted",
        .gauge,
        "Accepted pushes less those completed, coalesced, discarded, pending and in flight; anything but 0 is a bug."
    )
    static let pushMemory = Metric(
        "wakegate_push_memory_bytes",
        .gauge,
        "Memory of the pushes that wait or are in flight."
    )
    static let pushMemoryMax = Metric(
        "wakegate_push_memory_max_bytes",
        .gauge,
        "The maximum of that memory: limits.pendingBytesMax."
    )
    static let admitToDurable = Metric(
        "wakegate_push_admit_to_durable_seconds",
        .histogram,
        "Time from the moment a checked push leaves its loop until its commit is durable."
    )
}

// MARK: - Wakes

extension Metric {
    static let wakesLaunched = Metric(
        "wakegate_wakes_launched_total",
        .counter,
        "Launched wakes of pushes, and an operator's empty ones."
    )
    static let wakesEnded = Metric(
        "wakegate_wakes_ended_total",
        .counter,
        by: ["result"],
        "Wakes of pushes that ended, by result."
    )
    static let lateness = Metric(
        "wakegate_launch_lateness_seconds",
        .histogram,
        "Time that a launch permitted by the policy, of a push or a task, waited for a worker with a free slot."
    )
    static let wakeDuration = Metric(
        "wakegate_wake_duration_seconds",
        .histogram,
        by: ["result"],
        "Time from the launch of a push's wake to its end, by result."
    )
    static let oldestDue = Metric(
        "wakegate_oldest_due_age_seconds",
        .gauge,
        "The longest time for which a due launch has waited; 0 when none is due."
    )
}

// MARK: - Devices and workers

extension Metric {
    static let devicesRegistered = Metric("wakegate_devices_registered", .gauge, "Registered devices.")
    static let devicesHeld = Metric(
        "wakegate_devices_held",
        .gauge,
        by: ["reason"],
        "Devices with a pending push that is held, by the first hold that applies."
    )
    static let devicesWithoutWorker = Metric(
        "wakegate_devices_without_worker",
        .gauge,
        "Devices with a push that could launch, in topics without a subscribed worker."
    )
    static let workersConnected = Metric("wakegate_workers_connected", .gauge, "Workers' streams and webhooks.")
    static let workerSlots = Metric("wakegate_worker_slots", .gauge, "The number of slots of all workers.")
    static let workerSlotsBusy = Metric("wakegate_worker_slots_busy", .gauge, "The number of slots in use.")
    static let workersStalled = Metric(
        "wakegate_workers_stalled",
        .gauge,
        "Streams of this gateway that get no wakes because three in a row expired or were returned."
    )
    static let webhooks = Metric("wakegate_webhooks", .gauge, by: ["state"], "Webhooks by state.")
    static let topics = Metric("wakegate_topics", .gauge, "Topics that a device, a worker or the configuration named.")
}

// MARK: - Topics that the configuration names

extension Metric {
    /// The label for all topics that the configuration does not name. It is not a valid topic name.
    static let otherTopics = "(other)"

    static let topicPushesAccepted = Metric(
        "wakegate_topic_pushes_accepted_total",
        .counter,
        by: ["topic"],
        "Accepted pushes by topic; (other) is every topic that the configuration does not name."
    )
    static let topicWakesLaunched = Metric(
        "wakegate_topic_wakes_launched_total",
        .counter,
        by: ["topic"],
        "Launched wakes of pushes by topic; (other) is every topic that the configuration does not name."
    )
    static let topicPushesPending = Metric(
        "wakegate_topic_pushes_pending",
        .gauge,
        by: ["topic"],
        "Pushes that wait for their launch, by topic; (other) is every topic that the configuration does not name."
    )
    static let topicWakeDuration = Metric(
        "wakegate_topic_wake_duration_seconds",
        .histogram,
        by: ["topic"],
        "Time from the launch of a push's wake to its worker's answer or its deadline, by configured topic or (other)."
    )
    static let topicWorkersConnected = Metric(
        "wakegate_topic_workers_connected",
        .gauge,
        by: ["topic"],
        "Workers' streams and webhooks by topic; (other) is every topic that the configuration does not name."
    )
}

// MARK: - The gateway

extension Metric {
    static let commitDuration = Metric(
        "wakegate_commit_duration_seconds",
        .histogram,
        "Time that a commit of the journal took, its sync included."
    )
    static let commitPushes = Metric(
        "wakegate_commit_batch_pushes",
        .histogram,
        "Pushes that one commit made durable together."
    )
    static let storeFailed = Metric(
        "wakegate_store_failed",
        .gauge,
        "1 after a commit has failed: the gateway accepts nothing more until a restart."
    )
    static let lossAccepted = Metric(
        "wakegate_loss_accepted",
        .gauge,
        "1 if the gateway started despite losses of its journal (--accept-loss), until its next start."
    )
    static let limitsMet = Metric(
        "wakegate_limits_met_total",
        .counter,
        by: ["limit"],
        "The number of times that a limit had an effect, by its key in the configuration."
    )
    static let connections = Metric(
        "wakegate_connections",
        .gauge,
        by: ["listener"],
        "Open connections, by listener."
    )
    static let draining = Metric("wakegate_draining", .gauge, "1 while the gateway shuts down.")
    static let certificateExpiry = Metric(
        "wakegate_certificate_expiry_timestamp_seconds",
        .gauge,
        "The expiry of the edge's certificate, in seconds since 1970; absent without an edge."
    )
    static let countingSince = Metric(
        "wakegate_counting_since_timestamp_seconds",
        .gauge,
        "When the counters of pushes, tasks and wakes began, in seconds since 1970."
    )
    static let buildInfo = Metric("wakegate_build_info", .gauge, by: ["version"], "Always 1; its label is the version.")
}

// MARK: - The gateways on the same database

extension Metric {
    static let clusterAttached = Metric(
        "wakegate_cluster_attached",
        .gauge,
        "1 while the gateway can use its store, 0 while it waits for its database."
    )
    static let clusterGateways = Metric(
        "wakegate_cluster_gateways",
        .gauge,
        "Live gateways on the same database, including this one; 1 for an embedded store."
    )
    static let clusterLag = Metric(
        "wakegate_cluster_lag_seconds",
        .gauge,
        "The longest time since a gateway on the same database last reported."
    )
    static let clusterDiffers = Metric(
        "wakegate_cluster_configuration_differs",
        .gauge,
        "Keys of the configuration that differ between gateways on the same database and should not."
    )
    static let clusterLocked = Metric(
        "wakegate_cluster_locked_devices",
        .gauge,
        by: ["session"],
        "Devices whose commands wait because another session of the database, which the label names, has locked them."
    )
}

// MARK: - The process

extension Metric {
    static let residentMemory = Metric(
        "wakegate_process_resident_memory_bytes",
        .gauge,
        "Memory of the process that is not swapped out."
    )
    static let openDescriptors = Metric("wakegate_process_open_fds", .gauge, "Open file descriptors.")
    static let maxDescriptors = Metric(
        "wakegate_process_max_fds",
        .gauge,
        "The limit on open file descriptors."
    )
    static let processorTime = Metric(
        "wakegate_process_cpu_seconds_total",
        .counter,
        "Processor time that the process has used."
    )
    static let startTime = Metric(
        "wakegate_process_start_time_seconds",
        .gauge,
        "When the gateway started, in seconds since 1970."
    )
}

// MARK: - All metrics

extension Metric {
    /// All metrics, in the order of the output.
    package static let all: [Metric] = ofPushes + ofTasks + ofTheGateway

    private static let ofPushes = [
        pushesAccepted, pushesNoWake, pushesRejected, pushesCompleted, pushesCoalesced, pushesDiscarded, pushesPending,
        pushesInFlight, pushesUnaccounted, pushMemory, pushMemoryMax, wakesLaunched, wakesEnded,
        lateness, wakeDuration, oldestDue,
    ]

    private static let ofTheGateway = [
        devicesRegistered, devicesHeld, devicesWithoutWorker, workersConnected, workersStalled,
        workerSlots, workerSlotsBusy, webhooks, topics, topicPushesAccepted, topicWakesLaunched, topicPushesPending,
        topicWorkersConnected, topicWakeDuration, commitDuration, commitPushes, admitToDurable, storeFailed,
        lossAccepted,
        clusterAttached, clusterGateways, clusterLag, clusterDiffers, clusterLocked, limitsMet, connections, draining,
        certificateExpiry, countingSince, buildInfo, residentMemory, openDescriptors, maxDescriptors, processorTime,
        startTime,
    ]
}
