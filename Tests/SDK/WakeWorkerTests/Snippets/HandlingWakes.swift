import Foundation
import WakeWorker
import WakeWorkerTesting

// Each snippet of the article stands here once more, where it compiles; a test compares the two.

// snippet: handler
func refreshNews() async throws {
    let worker = try WakeWorker(
        gateway: "https://gateway.example.com:2197",
        topic: "com.example.news",
        credentials: .bearerTokenFile("/run/secrets/wakegate-token"),
        slots: 8
    )
    try await worker.run { notification in
        let news = try notification.payload(as: News.self)
        return try await fetch(edition: news.edition) ? .newData : .noData
    }
}
// end

// snippet: release
func reindex(_ notification: WakeNotification) async throws -> BackgroundFetchResult {
    guard FileManager.default.isWritableFile(atPath: "/srv/index") else {
        throw WakeRelease("/srv/index is not writable")
    }
    return try await fetch(edition: 7) ? .newData : .noData
}
// end

// snippet: time
func archive(_ notification: WakeNotification) async throws -> BackgroundFetchResult {
    guard notification.timeLeft > .seconds(2) else { return .failed }
    return try await notification.withExtendedTime {
        try await downloadArchive()
        return .newData
    }
}
// end

// snippet: device
func becomeDevice(_ worker: WakeWorker) async throws -> String {
    let token = try await worker.registerForRemoteNotifications()
    var conditions = DeviceConditions()
    conditions.batteryLevel = 0.15
    conditions.isCharging = false
    try await worker.report(conditions, for: token)
    return token
}
// end

// snippet: machine
func runAsThisMachine(_ worker: WakeWorker, _ token: String) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await worker.reportMachineConditions(for: token) }
        group.addTask { try await worker.run { notification in try await archive(notification) } }
        // Whichever ends first ends the other: reports when the worker stops, the worker when reports are refused.
        _ = try await group.next()
        group.cancelAll()
    }
}
// end

// snippet: tasks
func runTasks(_ worker: WakeWorker) async throws {
    try worker.backgroundTask(.appRefresh("com.example.news.refresh")) { context in
        // Submit the next request first, so that it exists even if this run fails.
        try await context.scheduler.submit(.appRefresh(context.identifier, earliestBegin: .now + .minutes(15)))
        _ = try await fetch(edition: 7)
    }
    try worker.backgroundTask(.processing("com.example.news.export.*")) { context in
        try await export(context.identifier)
    }
    try worker.backgroundTask(.urlSession("photos")) { context in
        try await sortPhotos(count: context.finishedTransferCount)
    }
    try await worker.runTasks()
}
// end

// snippet: submit
func planCleanup(_ worker: WakeWorker, _ token: String) async throws {
    let scheduler = worker.scheduler(for: token)
    do throws(BackgroundTaskError) {
        try await scheduler.submit(.processing("com.example.news.export.all", requiresExternalPower: true))
    } catch {
        guard error.code == .tooManyPendingTaskRequests else { throw error }
        for request in try await scheduler.pendingRequests() { log("\(request.identifier): \(request.why)") }
        try await scheduler.cancel("com.example.news.export.some")
    }
    try await scheduler.transfersFinished(session: "photos", count: 3)
}
// end

// snippet: continued
func runExport(_ worker: WakeWorker) throws {
    try worker.backgroundTask(.continued("com.example.news.export.*")) { task in
        let films = try await loadFilms(task.identifier)
        task.progress.totalUnitCount = Int64(films.count)
        // The progress that an earlier, lost launch reported.
        task.progress.completedUnitCount = task.resumedFrom?.completedUnitCount ?? 0
        for film in films.dropFirst(Int(task.progress.completedUnitCount)) {
            task.update(title: "Exporting", subtitle: film)
            try await export(film)
            task.progress.completedUnitCount += 1
        }
    }
}
// end

// snippet: start
func startExport(_ worker: WakeWorker, _ token: String) async throws {
    let resources = try await worker.supportedResources()
    try await worker.scheduler(for: token).submit(
        .continued(
            "com.example.news.export.films",
            title: "Exporting",
            strategy: .fail,
            requiredResources: resources.intersection(.gpu)
        )
    )
}
// end

// snippet: events
func watch(_ worker: WakeWorker) async {
    for await event in worker.events {
        switch event {
        case .disconnected(let reason, let wait): log("\(reason.message); again in \(wait)")
        case .dropped(let wake, _, let reason): log("the result of \(wake): \(reason.message)")
        default: break
        }
    }
}
// end

// snippet: launch
func refreshAsksForTheNext() async throws {
    let task = TestTask(.appRefresh("com.example.news.refresh"))
    try await task.run { context in
        try await context.scheduler.submit(.appRefresh(context.identifier, earliestBegin: .now + .minutes(15)))
    }
    assert(task.scheduler.submittedRequests.map(\.identifier) == ["com.example.news.refresh"])
}
// end

// What the snippets take for granted.

struct News: Decodable { let edition: Int }

private func fetch(edition: Int) async throws -> Bool { edition > 0 }

private func downloadArchive() async throws {}

private func export(_ identifier: String) async throws {}

private func loadFilms(_ identifier: String) async throws -> [String] { [identifier] }

private func sortPhotos(count: Int) async throws {}

private func log(_ line: String) {}
