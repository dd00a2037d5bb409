import HTTPClient
import WakeWorker

/// The instruction in a push to the worker that handles it. The default is an immediate answer with new data.
struct Instruction: Decodable {
    enum Kind: String, Decodable {
        /// Answers with `result`, after `milliseconds`.
        case answer
        /// Throws.
        case fail
        /// Waits until the handler is cancelled, then throws. After 10 minutes, answers with new data.
        case hang
        /// Behaves like `hang` at the first launch, and answers with new data at later launches.
        case hangOnce
        /// Waits for `milliseconds`, even if the handler is cancelled, then answers with `result`.
        case stubborn
        /// Requests an extension by `milliseconds`, shows the remaining time or the refusal, then answers with
        /// `result`.
        case extend
        /// Keeps the wake alive for `milliseconds`, then answers with `result`.
        case keepAlive
    }

    var kind = Kind.answer
    var result = "newData"
    var milliseconds: Int64 = 0

    private enum Key: String, CodingKey {
        case kind = "do"
        case result, milliseconds
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        self.kind = try values.decodeIfPresent(Kind.self, forKey: .kind) ?? .answer
        self.result = try values.decodeIfPresent(String.self, forKey: .result) ?? "newData"
        self.milliseconds = try values.decodeIfPresent(Int64.self, forKey: .milliseconds) ?? 0
    }
}

struct Fault: Error {}

/// Follows the instructions in its pushes, and shows each step as a line.
struct ScriptedHandler: Sendable {
    let worker: Int

    func handle(_ notification: WakeNotification) async throws -> BackgroundFetchResult {
        let instruction = try notification.payload(as: Instruction.self)
        Line.show(
            "wake",
            self.worker,
            [
                ("wake", .text(notification.id)), ("device", .text(notification.deviceToken)),
                ("attempt", .number(notification.attempt)), ("left", .number(Self.milliseconds(notification.timeLeft))),
            ]
        )
        defer { Line.show("handled", self.worker, [("wake", .text(notification.id))]) }
        let result = BackgroundFetchResult(rawValue: instruction.result) ?? .failed
        let thread = try HTTPThread.shared()
        switch instruction.kind {
        case .answer:
            if instruction.milliseconds > 0 { await thread.wait(milliseconds: instruction.milliseconds) }
            try Task.checkCancellation()
            return result
        case .fail: throw Fault()
        case .hangOnce where notification.attempt > 1: return .newData
        case .hang, .hangOnce:
            await thread.wait(milliseconds: 600_000)
            try Task.checkCancellation()
            return .newData
        case .stubborn:
            await Task { await thread.wait(milliseconds: instruction.milliseconds) }.value
            return result
        case .extend:
            do throws(WakeWorkerError) {
                let left = try await notification.extend(by: .milliseconds(instruction.milliseconds))
                Line.show("extended", self.worker, [("left", .number(Self.milliseconds(left)))])
            } catch {
                Line.show("refused", self.worker, [("code", .text(error.code.description))])
            }
            return result
        case .keepAlive:
            try await notification.withExtendedTime {
                await thread.wait(milliseconds: instruction.milliseconds)
                try Task.checkCancellation()
            }
            return result
        }
    }

    static func milliseconds(_ duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        return Int(seconds * 1000 + attoseconds / 1_000_000_000_000_000)
    }
}

/// A delegate that passes its notifications to a scripted handler.
final class ScriptedDelegate: RemoteNotificationDelegate {
    private let handler: ScriptedHandler

    init(handler: ScriptedHandler) {
        self.handler = handler
    }

    func worker(
        _ worker: WakeWorker,
        didReceiveRemoteNotification notification: WakeNotification,
        fetchCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
    ) {
        // If the handler throws, the completion handler is released without a call, and the wake fails.
        Task { if let result = try? await self.handler.handle(notification) { completionHandler(result) } }
    }

    func worker(_ worker: WakeWorker, didExpire notification: WakeNotification) {
        Line.show("didExpire", self.handler.worker, [("wake", .text(notification.id))])
    }
}
