import BackgroundTransfers
import Foundation
import WakeWorker

// Each snippet of the article stands here once more, where it compiles; a test compares the two.

// snippet: register
func registerAppRefresh(_ worker: WakeWorker, on executor: any TaskExecutor) throws {
    try worker.scheduler.register(forTaskWithIdentifier: "com.example.news.refresh", using: executor) { task in
        scheduleAppRefresh(worker.scheduler)
        let refresh = Task { task.setTaskCompleted(success: await refreshFeed()) }
        task.expirationHandler = { refresh.cancel() }
    }
}
// end

// snippet: schedule
func scheduleAppRefresh(_ scheduler: BackgroundTaskScheduler) {
    let request = BackgroundTaskRequest.appRefresh("com.example.news.refresh", earliestBegin: .now + .minutes(15))
    scheduler.submitTaskRequest(request) { error in
        if let error { log("the refresh is not scheduled: \(error)") }
    }
}
// end

// snippet: processing
func scheduleCleanup(_ scheduler: BackgroundTaskScheduler) async throws {
    var request = BackgroundTaskRequest.processing("com.example.news.cleanup", requiresExternalPower: true)
    request.requiresNetworkConnectivity = true
    request.earliestBegin = .now + .hours(1)
    try await scheduler.submit(request)
}
// end

// snippet: errors
func scheduleOrExplain(_ scheduler: BackgroundTaskScheduler) async throws {
    do {
        try await scheduleCleanup(scheduler)
    } catch BackgroundTaskError.notPermitted {
        log("permit com.example.news.cleanup in the gateway's configuration")
    } catch BackgroundTaskError.tooManyPendingTaskRequests {
        try await scheduler.cancelAll()
    } catch BackgroundTaskError.unavailable {
        log("background refresh is switched off")
    }
}
// end

// snippet: pending
func cancelCleanup(_ scheduler: BackgroundTaskScheduler) async throws {
    let pending = try await scheduler.pendingRequests()
    for request in pending where request.identifier.hasSuffix("cleanup") {
        try await scheduler.cancel(request.identifier)
    }
}
// end

// snippet: push
final class FeedApp: RemoteNotificationDelegate {
    func worker(
        _ worker: WakeWorker,
        didReceiveRemoteNotification notification: WakeNotification,
        fetchCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
    ) {
        Task { completionHandler(await refreshFeed() ? .newData : .noData) }
    }
}
// end

// snippet: conditions
func pauseInLowPowerMode(_ worker: WakeWorker) async {
    for await change in worker.conditionsChanges where change.conditions.isLowPowerMode == true {
        log("low power mode is on")
    }
}
// end

// snippet: transfer
func downloadFilm(_ url: URL) async throws {
    let session = try BackgroundSession("com.example.news.films")
    let id = try await session.downloadTask(with: url)
    try await session.wait(for: id)
    try await session.take(id, to: "/srv/films/film.mp4")
}
// end

// Functions that the snippets call.

private func refreshFeed() async -> Bool { true }

private func log(_ line: String) {}
