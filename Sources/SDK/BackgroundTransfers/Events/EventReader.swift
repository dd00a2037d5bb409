import HTTPClient
import Platform
import Wire

/// Reads a session's events for one reader: opens the stream, asks for the list, and does both again when the agent has
/// started anew.
final class EventReader {
    /// How long an agent that was there may be gone, in milliseconds.
    static let patience: Int64 = 60_000

    private let calls: SessionCalls
    private var follower: SessionFollower
    private var connection: EventConnection?
    /// What came and was not told, the last first.
    private var untold: [BackgroundSessionEvent] = []
    private var backoff = Backoff(firstMilliseconds: 100, lastMilliseconds: 5000)
    private var generator = RandomBits()
    /// Since when the agent is gone; nil while it is there, or never was.
    private var lostSince: Int64?
    private var wasThere: Bool

    /// - Parameters:
    ///   - calls: those of the session.
    ///   - tellsAll: whether it is for who asked the agent something before: it waits for an agent that is gone from
    ///     the beginning, and tells at first what was cancelled and taken, too.
    init(_ calls: SessionCalls, tellsAll: Bool = false) {
        self.calls = calls
        self.wasThere = tellsAll
        self.follower = SessionFollower(tellsAll: tellsAll)
    }

    deinit {
        self.connection?.close()
    }

    /// The next event; nil when the task was cancelled.
    func next() async throws(BackgroundTransferError) -> BackgroundSessionEvent? {
        while !Task.isCancelled {
            if let event = self.untold.popLast() { return event }
            do throws(BackgroundTransferError) {
                let connection = try await self.connected()
                // What the list told comes before the wait for more.
                guard self.untold.isEmpty else { continue }
                guard let error = self.take(await connection.next()) else { continue }
                throw error
            } catch {
                try await self.failed(error)
            }
        }
        return nil
    }

    /// - Returns: why the stream is over, when it is.
    private func take(_ items: [EventConnection.Item]) -> BackgroundTransferError? {
        var events: [BackgroundSessionEvent] = []
        var failure: BackgroundTransferError?
        for item in items {
            switch item {
            case .ended(let error): failure = error
            case .event(let event):
                guard let event = BackgroundSessionEvent(name: event.name, data: event.data) else { continue }
                if self.follower.received(event) { events.append(event) }
            }
        }
        self.untold = events.reversed() + self.untold
        return failure
    }

    /// A stream that events come on, behind whose first word the session's transfers were listed.
    private func connected() async throws(BackgroundTransferError) -> EventConnection {
        if let connection = self.connection { return connection }
        try await self.calls.prepare()
        let connection = EventConnection(self.calls.caller)
        self.connection = connection
        connection.open("\(self.calls.path)/events")
        let first = await connection.next()
        if let error = self.take(first) { throw error }
        guard !first.isEmpty else { throw .taskCancelled }
        // What comes on the stream from here on is in no list, and the list has what came before.
        let listed = self.follower.listed(try await self.calls.transfers())
        self.untold = listed.reversed() + self.untold
        self.backoff.succeeded()
        (self.wasThere, self.lostSince) = (true, nil)
        return connection
    }

    /// Waits for another try.
    ///
    /// - Throws: the error, when another try would come to the same, or was made for long enough.
    private func failed(_ error: BackgroundTransferError) async throws(BackgroundTransferError) {
        self.connection?.close()
        self.connection = nil
        if Task.isCancelled { return }
        let now = SystemClock.boot
        let since = self.lostSince ?? now
        self.lostSince = since
        // Requests wait for an agent that starts again by themselves, as long as nobody knows that there is one.
        guard error.isPassing, self.wasThere, now - since < Self.patience else { throw error }
        await self.calls.wait(milliseconds: self.backoff.failed(using: &self.generator))
    }
}

/// The events of a session, as they happen: see ``BackgroundSession/events``.
public struct BackgroundSessionEvents: AsyncSequence, Sendable {
    /// What happens.
    public typealias Element = BackgroundSessionEvent
    /// Why no more events come.
    public typealias Failure = BackgroundTransferError

    let calls: SessionCalls
    /// Whether a reader is told of all that has ended at first, and waits for an agent that is gone.
    var tellsAll = false

    /// A reader of its own: it is told what ended before it came, and no other reader's events are taken from it.
    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: EventReader(self.calls, tellsAll: self.tellsAll))
    }

    /// One reader of a session's events.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: EventReader

        /// Waits for the next event.
        ///
        /// - Parameter actor: where the caller runs.
        /// - Returns: the event; nil when the task was cancelled.
        /// - Throws: ``BackgroundTransferError``, when the agent is gone for a minute, or refuses the session.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(BackgroundTransferError) -> BackgroundSessionEvent? {
            try await self.reader.next()
        }
    }
}

/// What a reader of a session's events was told, so that a list tells what it missed and nothing is told twice.
///
/// Pure: lists and events come in, and what is to be told goes out.
package struct SessionFollower {
    /// The transfers whose end was told, or is of no interest.
    private var told: Set<BackgroundTransferID> = []
    private var isFirst = true
    private var isIdleTold = false
    /// Whether a reader's first list tells of what ended long ago, too: also of what was cancelled and taken.
    private let tellsAll: Bool

    package init(tellsAll: Bool = false) {
        self.tellsAll = tellsAll
    }

    /// Every transfer of the session, as of a moment after the events began to come in.
    ///
    /// - Returns: what the reader has not been told: at first what waits to be taken and what has failed, later
    ///   whatever has ended. What runs is told with its progress.
    package mutating func listed(_ transfers: [BackgroundTransfer]) -> [BackgroundSessionEvent] {
        var events: [BackgroundSessionEvent] = []
        self.told.formIntersection(transfers.map(\.id))
        for transfer in transfers {
            switch transfer.state {
            case .running: events.append(.progress(transfer.progress))
            case .waiting: if transfer.bytes > 0 { events.append(.progress(transfer.progress)) }
            case .finished, .failed, .cancelled:
                guard self.told.insert(transfer.id).inserted else { continue }
                let isOfInterest = self.tellsAll || !self.isFirst || transfer.state == .failed
                let isWaiting = transfer.state == .finished && !transfer.isTaken
                guard isOfInterest || isWaiting else { continue }
                if let event = BackgroundSessionEvent(ended: transfer) { events.append(event) }
            }
        }
        if !events.isEmpty { self.isIdleTold = false }
        self.isFirst = false
        if transfers.allSatisfy(\.state.isEnd), !transfers.isEmpty, !self.isIdleTold {
            self.isIdleTold = true
            events.append(.idle)
        }
        return events
    }

    /// An event has come.
    ///
    /// - Returns: whether it is to be told.
    package mutating func received(_ event: BackgroundSessionEvent) -> Bool {
        switch event {
        case .progress(let progress):
            guard !self.told.contains(progress.transfer) else { return false }
            self.isIdleTold = false
            return true
        case .finished(let transfer), .failed(let transfer), .cancelled(let transfer):
            guard self.told.insert(transfer.id).inserted else { return false }
            self.isIdleTold = false
            return true
        case .idle:
            defer { self.isIdleTold = true }
            return !self.isIdleTold
        }
    }
}

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
        guard let object = JSONValue(object: data) else { return nil }
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
