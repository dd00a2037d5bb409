import HTTPClient

/// One stream of a session's events, from its request to its end.
///
/// `@unchecked Sendable`: mutable state is accessed only on its `HTTPThread`.
final class EventConnection: HTTPAgent, @unchecked Sendable {
    /// An event, or the reason why the stream has ended. No items follow a reason.
    typealias Item = Result<ServerSentEvent, BackgroundTransferError>

    /// The maximum number of items in the queue of a slow reader. If the queue is full, the stream ends, and the reader
    /// lists the transfers again.
    private static let itemsMax = 8192
    /// The time without data, in milliseconds, after which the stream ends. The agent sends data at least every 15
    /// seconds.
    private static let silenceMax: Int64 = 45_000

    private let caller: AgentCaller
    private let items: AsyncStream<Item>
    private let source: AsyncStream<Item>.Continuation
    private var request: HTTPRequestID?
    private var reader = EventStreamReader()

    init(_ caller: AgentCaller) {
        self.caller = caller
        (self.items, self.source) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(Self.itemsMax + 1))
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
        self.source.finish()
        self.caller.thread.submit { self.stop(on: $0) }
    }

    /// Waits for the next item. Returns nil if the task was cancelled, the stream was closed, or the reader was too
    /// slow.
    ///
    /// Only one task may call this method at a time.
    func next() async -> Item? {
        var iterator = self.items.makeAsyncIterator()
        return await iterator.next()
    }
}

// MARK: - On the thread

extension EventConnection {
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
            for event in try self.reader.received(bytes) {
                // The last place is for the reason of the end.
                guard case .enqueued(remaining: 0) = self.source.yield(.success(event)) else { continue }
                self.stop(on: loop)
                return self.end(Self.over)
            }
        } catch {
            self.stop(on: loop)
            self.end(BackgroundTransferError(.badAnswer, "an event of the agent is too long; see its version"))
        }
    }

    /// The error if the stream has ended without another reason.
    static let over = BackgroundTransferError(
        .interrupted,
        "the agent ended the stream of events; see whether it runs",
        isPassing: true
    )

    private func end(_ error: BackgroundTransferError) {
        self.source.yield(.failure(error))
        self.source.finish()
    }
}
