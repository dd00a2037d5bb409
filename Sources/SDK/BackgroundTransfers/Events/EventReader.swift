import HTTPClient
import Platform

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
