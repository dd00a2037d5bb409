import HTTPClient
import Synchronization

/// One stream of a session's events, from its request to its end.
///
/// `@unchecked Sendable`: mutable state outside `state` is accessed only on its `HTTPThread`.
final class EventConnection: HTTPAgent, @unchecked Sendable {
    /// An item received on a stream.
    enum Item: Sendable {
        case event(ServerSentEvent)
        /// The stream has ended. No items follow.
        case ended(BackgroundTransferError)
    }

    private struct State {
        var items: [Item] = []
        var waiting: CheckedContinuation<[Item], Never>?
        /// True if the stream has ended or the reader has closed it. No more items are accepted.
        var isClosed = false
    }

    /// The maximum number of items in the queue of a slow reader. If the queue is full, the stream ends, and the reader
    /// lists the transfers again.
    static let itemsMax = 8192
    /// The time without data, in milliseconds, after which the stream ends. The agent sends data at least every 15
    /// seconds.
    static let silenceMax: Int64 = 45_000

    private let caller: AgentCaller
    private let state = Mutex(State())
    private var request: HTTPRequestID?
    private var reader = EventStreamReader()

    init(_ caller: AgentCaller) {
        self.caller = caller
    }

    /// Opens the stream at a path.
    func open(_ path: String) {
        var request = self.caller.request("GET", path)
        request.timeoutMilliseconds = nil
        request.isStreaming = true
        request.isFresh = true
        let opening = request
        self.caller.thread.submit { self.begin(opening, on: $0) }
    }

    /// Ends the stream and closes its connection.
    func close() {
        self.end(nil)
        self.caller.thread.submit { self.stop(on: $0) }
    }

    /// Waits for items, and returns all items received since the last call. Returns an empty array if the task was
    /// cancelled or the stream was closed.
    ///
    /// Only one task may call this method at a time.
    func next() async -> [Item] {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let items: [Item]? = self.state.withLock { state in
                    var items: [Item] = []
                    swap(&items, &state.items)
                    if !items.isEmpty || state.isClosed { return items }
                    state.waiting = continuation
                    return nil
                }
                if let items { continuation.resume(returning: items) }
            }
        } onCancel: {
            self.close()
        }
    }
}

// MARK: - On the thread

extension EventConnection {
    private func begin(_ request: HTTPRequest, on loop: HTTPLoop) {
        guard !self.state.withLock({ $0.isClosed }) else { return }
        do throws(HTTPClientError) {
            self.request = try loop.start(request, for: self)
            loop.setMoment(loop.now + Self.silenceMax, for: self)
        } catch {
            self.end(self.caller.error(error))
        }
    }

    private func stop(on loop: HTTPLoop) {
        loop.setMoment(nil, for: self)
        if let request = self.request { loop.cancel(request) }
        self.request = nil
    }

    func received(_ event: HTTPEvent, on loop: HTTPLoop) {
        switch event {
        case .head(_, let response): self.reader.began(response)
        case .body(_, let bytes):
            loop.setMoment(loop.now + Self.silenceMax, for: self)
            self.received(bytes, on: loop)
        case .ended(_, let result):
            self.request = nil
            loop.setMoment(nil, for: self)
            switch result {
            case .failure(let error): self.end(self.caller.error(error))
            case .success(let response):
                let answer = self.reader.whole(response)
                self.end(answer.isSuccess ? Self.over : AgentCaller.refusal(answer))
            }
        }
    }

    func momentReached(on loop: HTTPLoop) {
        self.stop(on: loop)
        self.end(BackgroundTransferError(.timedOut, "the agent was silent for too long; see its log", isPassing: true))
    }

    private func received(_ bytes: [UInt8], on loop: HTTPLoop) {
        do {
            for event in try self.reader.received(bytes) where !self.take(.event(event)) {
                self.stop(on: loop)
                self.end(Self.over)
            }
        } catch {
            self.stop(on: loop)
            self.end(BackgroundTransferError(.badAnswer, "an event of the agent is too long; see its version"))
        }
    }

    private static let over = BackgroundTransferError(
        .interrupted,
        "the agent ended the stream of events; see whether it runs",
        isPassing: true
    )

    /// - Returns: false if the queue was full. The queued items are then discarded.
    private func take(_ item: Item) -> Bool {
        let (reader, isTaken) = self.state.withLock { state -> (CheckedContinuation<[Item], Never>?, Bool) in
            guard !state.isClosed else { return (nil, true) }
            if let reader = state.waiting {
                state.waiting = nil
                return (reader, true)
            }
            guard state.items.count < Self.itemsMax else {
                state.items = []
                return (nil, false)
            }
            state.items.append(item)
            return (nil, true)
        }
        reader?.resume(returning: [item])
        return isTaken
    }

    /// - Parameter error: the reason why the stream ended; nil if the reader closes it.
    private func end(_ error: BackgroundTransferError?) {
        let item = error.map { Item.ended($0) }
        let reader = self.state.withLock { state -> CheckedContinuation<[Item], Never>? in
            guard !state.isClosed else { return nil }
            state.isClosed = true
            if let reader = state.waiting {
                state.waiting = nil
                return reader
            }
            state.items = item.map { state.items + [$0] } ?? []
            return nil
        }
        reader?.resume(returning: item.map { [$0] } ?? [])
    }
}
