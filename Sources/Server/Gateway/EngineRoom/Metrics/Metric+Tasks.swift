import Wire

// MARK: - Requests of background tasks

extension Metric {
    static let tasksSubmitted = Metric(
        "wakegate_tasks_submitted_total",
        .counter,
        by: ["kind"],
        "Requests of background tasks that were accepted, by kind."
    )
    static let tasksRefused = Metric(
        "wakegate_tasks_refused_total",
        .counter,
        by: ["reason"],
        "Requests that the policy refused, by the reason in the answer."
    )
    static let tasksReplaced = Metric(
        "wakegate_tasks_replaced_total",
        .counter,
        "Requests that a newer request with the same identifier replaced."
    )
    static let tasksCancelled = Metric(
        "wakegate_tasks_cancelled_total",
        .counter,
        "Requests that were cancelled while they waited."
    )
    static let tasksDiscarded = Metric(
        "wakegate_tasks_discarded_total",
        .counter,
        by: ["reason"],
        "Requests that were dropped, by reason."
    )
    static let tasksWaiting = Metric(
        "wakegate_tasks_waiting",
        .gauge,
        by: ["kind"],
        "Requests that wait for their launch, by kind."
    )
    static let tasksInFlight = Metric(
        "wakegate_tasks_in_flight",
        .gauge,
        by: ["kind"],
        "Requests whose wake is at a worker, by kind."
    )
    static let tasksStalled = Metric(
        "wakegate_tasks_stalled",
        .gauge,
        "Continued tasks on streams of this gateway that have not advanced for 15 seconds."
    )
    static let taskProgressReports = Metric(
        "wakegate_task_progress_reports_total",
        .counter,
        "Progress reports of continued tasks that this gateway has accepted since its start."
    )
    static let tasksHeld = Metric(
        "wakegate_tasks_held",
        .gauge,
        by: ["reason"],
        "Requests that wait and are held, by the first hold that applies."
    )
    static let tasksUnaccounted = Metric(
        "wakegate_tasks_unaccounted",
        .gauge,
        "Requests less those replaced, cancelled, discarded, ended, waiting and in flight; anything but 0 is a bug."
    )
    static let taskMemory = Metric(
        "wakegate_task_memory_bytes",
        .gauge,
        "Memory of the names and titles of waiting and running tasks and sessions, and of event ids."
    )
    static let taskMemoryMax = Metric(
        "wakegate_task_memory_max_bytes",
        .gauge,
        "The maximum of that memory: limits.taskBytesMax."
    )
}

// MARK: - Finished transfers of background sessions

extension Metric {
    static let sessionsFinished = Metric(
        "wakegate_sessions_finished_total",
        .counter,
        "Finished transfers of background sessions whose reports were accepted."
    )
    static let sessionsRefused = Metric(
        "wakegate_sessions_refused_total",
        .counter,
        "Finished transfers that were refused because too many sessions waited."
    )
    static let sessionsCompleted = Metric(
        "wakegate_sessions_completed_total",
        .counter,
        "Finished transfers whose wake a worker handled."
    )
    static let sessionsDiscarded = Metric(
        "wakegate_sessions_discarded_total",
        .counter,
        by: ["reason"],
        "Finished transfers that were dropped, by reason."
    )
    static let sessionsWaiting = Metric(
        "wakegate_sessions_waiting",
        .gauge,
        "Finished transfers that wait for the wake of their session."
    )
    static let sessionsInFlight = Metric(
        "wakegate_sessions_in_flight",
        .gauge,
        "Finished transfers whose session's wake is at a worker."
    )
    static let sessionsUnaccounted = Metric(
        "wakegate_sessions_unaccounted",
        .gauge,
        "Finished transfers less those completed, discarded, waiting and in flight; anything but 0 is a bug."
    )
}

// MARK: - Wakes of tasks and sessions

extension Metric {
    static let taskWakesLaunched = Metric(
        "wakegate_task_wakes_launched_total",
        .counter,
        by: ["kind"],
        "Wakes of tasks and sessions launched, by kind."
    )
    static let taskWakesEnded = Metric(
        "wakegate_task_wakes_ended_total",
        .counter,
        by: ["kind", "result"],
        "Wakes of tasks and sessions that ended, by kind and result."
    )
    static let taskWakeDuration = Metric(
        "wakegate_task_wake_duration_seconds",
        .histogram,
        by: ["kind"],
        "Time from the launch of a wake of a task or session to its end, by kind."
    )

    /// All metrics of tasks and sessions, in the order in which they are written.
    static let ofTasks = [
        tasksSubmitted, tasksRefused, tasksReplaced, tasksCancelled, tasksDiscarded, tasksWaiting, tasksInFlight,
        tasksStalled, taskProgressReports, tasksHeld, tasksUnaccounted, taskMemory, taskMemoryMax, sessionsFinished,
        sessionsRefused, sessionsCompleted,
        sessionsDiscarded, sessionsWaiting, sessionsInFlight, sessionsUnaccounted, taskWakesLaunched, taskWakesEnded,
        taskWakeDuration,
    ]
}
