import HTTPClient

/// One stream of a session's events, from its request to its end.
///
/// `@unchecked Sendable`: `request` and `reader` are accessed only on its `HTTPThread`.
final class EventConnection: HTTPAgent, @unchecked Sendable {
    /// An item received on a stream.
    enum Item: Sendable {
        case event(ServerSentEvent)
        /// The stream has ended. No items follow.
        case ended(BackgroundTransferError)
    }

    /// The maximum number of items in the queue of a slow reader. If the queue is full, the stream ends, and the reader
    /// lists the transfers again.
    static let itemsMax = 8192
    /// The time without data, in milliseconds, after which the stream ends. The agent sends data at least every 15
    /// seconds.
    static let silenceMax: Int64 = 45_000

    static let over = BackgroundTransferError(
        .interrupted,
        "the agent ended the stream of events; see whether it runs",
        isPassing: true
    )

    private let caller: AgentCaller
    private let items: AsyncStream<Item>
    private let queue: AsyncStream<Item>.Continuation
    private var request: HTTPRequestID?
    private var reader = EventStreamReader()

    /// Opens the stream at a path.
    init(_ caller: AgentCaller, _ path: String) {
        self.caller = caller
        (self.items, self.queue) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.itemsMax))
        self.queue.onTermination = { [weak self] _ in
            guard let connection = self else { return }
            caller.thread.submit { connection.stop(on: $0) }
        }
        var request = caller.request("GET", path)
        request.timeoutMilliseconds = nil
        request.isStreaming = true
        request.isFresh = true
        let opening = request
        caller.thread.submit { self.begin(opening, on: $0) }
    }

    /// Ends the stream and closes its connection.
    func close() { self.queue.finish() }

    /// Waits for the next item. Returns nil if the stream was closed, the task was cancelled, or the queue was full.
    func next() async -> Item? {
        var items = self.items.makeAsyncIterator()
        return await items.next()
    }

    // MARK: On the thread

    private func begin(_ request: HTTPRequest, on loop: HTTPLoop) {
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
            self.received(bytes)
        case .ended(_, .failure(let error)): self.end(self.caller.error(error))
        case .ended(_, .success(let response)):
            let answer = self.reader.whole(response)
            self.end(answer.isSuccess ? Self.over : AgentCaller.refusal(answer))
        }
    }

    func momentReached(on loop: HTTPLoop) {
        self.end(BackgroundTransferError(.timedOut, "the agent was silent for too long; see its log", isPassing: true))
    }

    private func received(_ bytes: [UInt8]) {
        do {
            for event in try self.reader.received(bytes) {
                if case .dropped = self.queue.yield(.event(event)) { return self.queue.finish() }
            }
        } catch {
            self.end(BackgroundTransferError(.badAnswer, "an event of the agent is too long; see its version"))
        }
    }

    private func end(_ error: BackgroundTransferError) {
        self.queue.yield(.ended(error))
        self.queue.finish()
    }
}
