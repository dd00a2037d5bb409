import HTTPClient
import Platform
import Wire

/// Reads a session's events for one reader. Opens the event stream and lists the transfers; repeats both after the
/// agent has restarted.
final class EventReader {
    /// The maximum time, in milliseconds, to wait for an agent that was reachable before.
    static let gracePeriod: Int64 = 60_000

    private let calls: SessionCalls
    private var follower: SessionFollower
    private var connection: EventConnection?
    /// The received events that were not delivered yet, in reverse order.
    private var undelivered: [BackgroundSessionEvent] = []
    private var backoff = Backoff(firstMilliseconds: 100, lastMilliseconds: 5000)
    private var generator = RandomBits()
    /// The time of the first failure since the agent was last reached; nil if there was none.
    private var lostSince: Int64?
    private var wasThere: Bool

    /// - Parameters:
    ///   - calls: the requests of the session.
    ///   - tellsAll: true to include every ended transfer in the first events, and to wait for an agent that is not
    ///     running.
    init(_ calls: SessionCalls, tellsAll: Bool = false) {
        self.calls = calls
        self.wasThere = tellsAll
        self.follower = SessionFollower(tellsAll: tellsAll)
    }

    deinit {
        self.connection?.close()
    }

    /// Returns the next event, or nil if the task was cancelled.
    func next() async throws(BackgroundTransferError) -> BackgroundSessionEvent? {
        while !Task.isCancelled {
            if let event = self.undelivered.popLast() { return event }
            do throws(BackgroundTransferError) {
                let connection = try await self.connected()
                // Deliver the events of the list before waiting for more.
                guard self.undelivered.isEmpty else { continue }
                try self.take(await connection.next())
            } catch {
                try await self.failed(error)
            }
        }
        return nil
    }

    /// - Throws: the reason why the stream ended.
    private func take(_ item: EventConnection.Item?) throws(BackgroundTransferError) {
        switch item {
        case .event(let event):
            guard let event = BackgroundSessionEvent(name: event.name, data: event.data) else { return }
            if self.follower.received(event) { self.undelivered.append(event) }
        case .ended(let error): throw error
        case nil: throw EventConnection.over
        }
    }

    /// Returns an open event stream. The transfers are listed after the first event on the stream. Therefore no change
    /// is missed.
    private func connected() async throws(BackgroundTransferError) -> EventConnection {
        if let connection = self.connection { return connection }
        try await self.calls.prepare()
        let connection = EventConnection(self.calls.caller, "\(self.calls.path)/events")
        self.connection = connection
        try self.take(await connection.next())
        // Earlier changes are in the list, and later changes arrive on the stream.
        let listed = self.follower.listed(try await self.calls.transfers())
        self.undelivered = listed.reversed() + self.undelivered
        self.backoff.succeeded()
        (self.wasThere, self.lostSince) = (true, nil)
        return connection
    }

    /// Waits before the next attempt.
    ///
    /// - Throws: the error, if another attempt cannot help or the agent was unreachable for too long.
    private func failed(_ error: BackgroundTransferError) async throws(BackgroundTransferError) {
        self.connection?.close()
        self.connection = nil
        if Task.isCancelled { return }
        let now = SystemClock.boot
        let since = self.lostSince ?? now
        self.lostSince = since
        // If the agent was never reached, the error is thrown immediately. The requests have already waited for the
        // agent.
        guard error.isPassing, self.wasThere, now - since < Self.gracePeriod else { throw error }
        await self.calls.caller.thread.wait(milliseconds: Int64(self.backoff.failed(using: &self.generator)))
    }
}

/// The events of a session: see ``BackgroundSession/events``.
public struct BackgroundSessionEvents: AsyncSequence, Sendable {
    /// The type of the events.
    public typealias Element = BackgroundSessionEvent
    /// The type of the error that ends the sequence.
    public typealias Failure = BackgroundTransferError

    let calls: SessionCalls
    /// True if the first events include every ended transfer, and the reader waits for an agent that is not running.
    var tellsAll = false

    /// Creates an independent reader. Each reader receives all events, including the transfers that ended before it
    /// started.
    public func makeAsyncIterator() -> Iterator {
        Iterator(reader: EventReader(self.calls, tellsAll: self.tellsAll))
    }

    /// One reader of a session's events.
    public struct Iterator: AsyncIteratorProtocol {
        let reader: EventReader

        /// Waits for the next event.
        ///
        /// - Parameter actor: the actor of the caller.
        /// - Returns: the event, or nil if the task was cancelled.
        /// - Throws: ``BackgroundTransferError``, if the agent is unreachable for a minute or refuses the session.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(BackgroundTransferError) -> BackgroundSessionEvent? {
            try await self.reader.next()
        }
    }
}

/// The record of the events that a reader has received. With it, a new list of transfers adds only the missed events.
///
/// The methods take lists and events, return the events to deliver, and have no other effects.
package struct SessionFollower {
    /// The transfers whose end was delivered or does not have to be delivered.
    private var reported: Set<BackgroundTransferID> = []
    private var isFirst = true
    private var isIdleReported = false
    /// True if the first list yields every ended transfer, including cancelled transfers and downloads that `take` has
    /// moved.
    private let tellsAll: Bool

    package init(tellsAll: Bool = false) {
        self.tellsAll = tellsAll
    }

    /// Processes a list of all transfers of the session, which was requested after the event stream was open.
    ///
    /// - Returns: the events that the reader has not received. These are the progress of unfinished transfers, the end
    ///   of each other transfer, and `idle` if all have ended. Without `tellsAll`, the first list yields only the ends
    ///   of failed transfers, finished uploads, and finished downloads that `take` has not moved.
    package mutating func listed(_ transfers: [BackgroundTransfer]) -> [BackgroundSessionEvent] {
        var events: [BackgroundSessionEvent] = []
        self.reported.formIntersection(transfers.map(\.id))
        for transfer in transfers {
            switch transfer.state {
            case .running: events.append(.progress(transfer.progress))
            case .waiting: if transfer.bytes > 0 { events.append(.progress(transfer.progress)) }
            case .finished, .failed, .cancelled:
                guard self.reported.insert(transfer.id).inserted else { continue }
                let isOfInterest = self.tellsAll || !self.isFirst || transfer.state == .failed
                let isWaiting = transfer.state == .finished && !transfer.isTaken
                guard isOfInterest || isWaiting else { continue }
                if let event = BackgroundSessionEvent(ended: transfer) { events.append(event) }
            }
        }
        if !events.isEmpty { self.isIdleReported = false }
        self.isFirst = false
        if transfers.allSatisfy(\.state.isEnd), !transfers.isEmpty, !self.isIdleReported {
            self.isIdleReported = true
            events.append(.idle)
        }
        return events
    }

    /// Processes an event of the stream.
    ///
    /// - Returns: true if the event should be delivered.
    package mutating func received(_ event: BackgroundSessionEvent) -> Bool {
        switch event {
        case .progress(let progress):
            guard !self.reported.contains(progress.transfer) else { return false }
            self.isIdleReported = false
            return true
        case .finished(let transfer), .failed(let transfer), .cancelled(let transfer):
            guard self.reported.insert(transfer.id).inserted else { return false }
            self.isIdleReported = false
            return true
        case .idle:
            defer { self.isIdleReported = true }
            return !self.isIdleReported
        }
    }
}

/// An event of a session: see ``BackgroundSession/events``.
///
/// Later versions may add cases, so a `switch` needs a `default`.
public enum BackgroundSessionEvent: Hashable, Sendable {
    /// A transfer has made progress. The agent sends at most four such events a second for each transfer.
    case progress(BackgroundTransferProgress)
    /// A transfer has finished. The file of a download can be moved with ``BackgroundSession/take(_:to:replacing:)``.
    case finished(BackgroundTransfer)
    /// A transfer has failed permanently.
    case failed(BackgroundTransfer)
    /// A transfer was cancelled.
    case cancelled(BackgroundTransfer)
    /// All transfers of the session have ended.
    case idle

    /// Reads an event that the agent sent; nil if the name is unknown or the data is malformed.
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

    /// Creates the event for an ended transfer; nil if the transfer has not ended.
    init?(ended transfer: BackgroundTransfer) {
        switch transfer.state {
        case .finished: self = .finished(transfer)
        case .failed: self = .failed(transfer)
        case .cancelled: self = .cancelled(transfer)
        case .waiting, .running: return nil
        }
    }
}
