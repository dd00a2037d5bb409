import Foundation
import HTTPClient
import WakeWorker

/// Handlers of background tasks and sessions. The end of the task's or session's name determines the behavior:
///
/// - `fail`: throws.
/// - `hang`: waits until it is cancelled.
/// - `count`: counts to 50 and waits until it is cancelled. If the task resumes after a lost launch, continues to 60
///   and succeeds.
///
/// With any other name, the handler succeeds at once.
struct ScriptedTasks: Sendable {
    let worker: Int
    private static let countTotal: Int64 = 60
    private static let countFirst: Int64 = 50
    private static let countStep: Int64 = 100

    /// Registers a handler for each of the comma-separated identifiers and names.
    func register(on worker: WakeWorker, tasks: String?, sessions: String?) throws(WakeWorkerError) {
        for identifier in Self.names(tasks) {
            try worker.backgroundTask(.processing(identifier)) { try await self.run($0) }
        }
        for name in Self.names(sessions) { try worker.backgroundTask(.urlSession(name)) { try await self.run($0) } }
    }

    /// Shows the changes of conditions until the stream ends.
    func show(_ changes: AsyncStream<DeviceConditionsChange>) async {
        for await change in changes {
            let state = change.conditions.appState?.rawValue ?? ""
            Line.show("conditions", self.worker, [("device", .text(change.deviceToken)), ("appState", .text(state))])
        }
    }

    private func run(_ context: BackgroundTaskContext) async throws {
        Line.show(
            "task",
            self.worker,
            [
                ("wake", .text(context.id)), ("kind", .text(context.kind.rawValue)),
                ("task", .text(context.identifier)),
                ("device", .text(context.deviceToken)), ("attempt", .number(context.attempt)),
                ("count", .number(context.finishedTransferCount)),
            ]
        )
        if context.identifier.hasSuffix("fail") { throw Fault() }
        if context.identifier.hasSuffix("count") { return try await self.count(context) }
        guard context.identifier.hasSuffix("hang") else { return }
        await (try HTTPThread.shared()).wait(milliseconds: 600_000)
        let reason = context.expirationReason?.rawValue ?? ""
        Line.show("cancelled", self.worker, [("wake", .text(context.id)), ("reason", .text(reason))])
        try Task.checkCancellation()
    }

    private func count(_ task: BackgroundTaskContext) async throws {
        let from = task.resumedFrom?.completedUnitCount ?? 0
        Line.show("counting", self.worker, [("task", .text(task.identifier)), ("from", .number(Int(from)))])
        let thread = try HTTPThread.shared()
        task.progress.totalUnitCount = Self.countTotal
        task.progress.completedUnitCount = from
        let end = task.resumedFrom == nil ? Self.countFirst : Self.countTotal
        while task.progress.completedUnitCount < end {
            await thread.wait(milliseconds: Self.countStep)
            try Task.checkCancellation()
            task.progress.completedUnitCount += 1
            task.update(subtitle: "\(task.progress)")
        }
        guard !task.progress.isFinished else { return }
        await thread.wait(milliseconds: 600_000)
        try Task.checkCancellation()
    }

    private static func names(_ list: String?) -> [String] { list?.split(separator: ",").map(String.init) ?? [] }
}

extension Commands {
    /// Performs `submit TOKEN KIND IDENTIFIER [SECONDS]`, `pending TOKEN`, `cancel TOKEN [IDENTIFIER]` or `finished
    /// TOKEN SESSION COUNT`.
    ///
    /// - Returns: the name and the value of the answer; nil if the words are none of these commands.
    static func schedule(
        _ words: [String],
        with worker: WakeWorker
    ) async throws -> (name: String, value: String)? {
        guard words.count >= 2 else { return nil }
        let scheduler = worker.scheduler(for: words[1])
        switch words[0] {
        case "submit" where words.count >= 4:
            let begin = words.dropFirst(4).first.flatMap { Int($0) }.map { Duration.seconds($0) }
            let request: BackgroundTaskRequest =
                switch words[2] {
                case "appRefresh": .appRefresh(words[3], earliestBegin: begin.map { .now + $0 })
                case "continued": .continued(words[3], title: "Counting")
                default: .processing(words[3], earliestBegin: begin.map { .now + $0 })
                }
            return ("disposition", try await scheduler.submit(request).disposition.rawValue)
        case "pending":
            let identifiers = try await scheduler.pendingRequests().map(\.identifier)
            return ("pending", identifiers.sorted().joined(separator: ","))
        case "cancel" where words.count == 2:
            try await scheduler.cancelAll()
            return ("cancelled", "")
        case "cancel":
            try await scheduler.cancel(words[2])
            return ("cancelled", words[2])
        case "finished" where words.count == 4:
            try await scheduler.transfersFinished(session: words[2], count: Int(words[3]) ?? 0)
            return ("finished", words[2])
        default: return nil
        }
    }
}
