import WakeWorker

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

// snippet: delegate
final class NewsApp: RemoteNotificationDelegate {
    func worker(
        _ worker: WakeWorker,
        didReceiveRemoteNotification notification: WakeNotification,
        fetchCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
    ) {
        download { isNew in completionHandler(isNew ? .newData : .noData) }
    }
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

// snippet: use
func sayIfUsed(_ worker: WakeWorker, _ token: String, isUsed: Bool) async throws {
    var conditions = DeviceConditions()
    conditions.appState = isUsed ? .active : .background
    try await worker.report(conditions, for: token)
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

// snippet: test
func handlerKnowsItsPayload() async throws {
    let notification = WakeNotification(topic: "com.example.news", payload: #"{"edition":7}"#)
    let news = try notification.payload(as: News.self)
    assert(news.edition == 7)
}
// end

// What the snippets take for granted.

struct News: Decodable { let edition: Int }

private func fetch(edition: Int) async throws -> Bool { edition > 0 }

private func download(_ done: @escaping @Sendable (Bool) -> Void) { done(true) }

private func downloadArchive() async throws {}

private func log(_ line: String) {}
