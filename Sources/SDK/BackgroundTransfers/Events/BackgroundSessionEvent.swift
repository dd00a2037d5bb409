import Wire

/// What happens in a session: see ``BackgroundSession/events``.
///
/// More cases may come; give a `switch` a `default`.
public enum BackgroundSessionEvent: Hashable, Sendable {
    /// A transfer is further than before; of one transfer at most four a second.
    case progress(BackgroundTransferProgress)
    /// A transfer has finished; a download's file waits to be taken.
    case finished(BackgroundTransfer)
    /// A transfer has failed for good.
    case failed(BackgroundTransfer)
    /// A transfer was cancelled.
    case cancelled(BackgroundTransfer)
    /// All transfers of the session have ended.
    case idle

    /// Reads an event of the agent; nil for one that says nothing of this kind, or cannot be read.
    init?(name: String, data: [UInt8]) {
        guard let object = JSONValue.object(data) else { return nil }
        switch name {
        case "progress":
            guard let progress = BackgroundTransferProgress(object) else { return nil }
            self = .progress(progress)
        case "finished", "failed", "cancelled":
            guard let event = BackgroundTransfer(object).flatMap({ Self(ended: $0) }) else { return nil }
            self = event
        case "idle": self = .idle
        default: return nil
        }
    }

    /// The event of a transfer that has ended; nil for one that has not.
    init?(ended transfer: BackgroundTransfer) {
        switch transfer.state {
        case .finished: self = .finished(transfer)
        case .failed: self = .failed(transfer)
        case .cancelled: self = .cancelled(transfer)
        case .waiting, .running: return nil
        }
    }
}
