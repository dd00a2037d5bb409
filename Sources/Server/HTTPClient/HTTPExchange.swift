/// A request whose answer a task awaits.
///
/// `@unchecked Sendable`: it is touched on its `HTTPThread` alone.
final class HTTPExchange: HTTPAgent, @unchecked Sendable {
    private var continuation: CheckedContinuation<Result<HTTPResponse, HTTPClientError>, Never>?
    private var request: HTTPRequestID?
    private var isCancelled = false

    func begin(
        _ request: HTTPRequest,
        _ continuation: CheckedContinuation<Result<HTTPResponse, HTTPClientError>, Never>,
        on loop: HTTPLoop
    ) {
        self.continuation = continuation
        guard !self.isCancelled else { return self.end(Self.cancelled) }
        do throws(HTTPClientError) {
            self.request = try loop.start(request, for: self)
        } catch {
            self.end(.failure(error))
        }
    }

    func cancel(on loop: HTTPLoop) {
        self.isCancelled = true
        if let request = self.request { loop.cancel(request) }
        self.end(Self.cancelled)
    }

    func received(_ event: HTTPEvent, on loop: HTTPLoop) {
        if case .ended(_, let result) = event { self.end(result) }
    }

    func momentReached(on loop: HTTPLoop) {}

    private static let cancelled = Result<HTTPResponse, HTTPClientError>.failure(
        HTTPClientError(.cancelled, "the task that waited for the answer was cancelled")
    )

    private func end(_ result: Result<HTTPResponse, HTTPClientError>) {
        self.request = nil
        self.continuation?.resume(returning: result)
        self.continuation = nil
    }
}

/// A moment that a task awaits.
///
/// `@unchecked Sendable`: it is touched on its `HTTPThread` alone.
final class HTTPAlarm: HTTPAgent, @unchecked Sendable {
    private var continuation: CheckedContinuation<Void, Never>?
    private var isCancelled = false

    func begin(_ milliseconds: Int64, _ continuation: CheckedContinuation<Void, Never>, on loop: HTTPLoop) {
        guard !self.isCancelled else { return continuation.resume() }
        self.continuation = continuation
        loop.setMoment(loop.now + max(0, milliseconds), for: self)
    }

    func cancel(on loop: HTTPLoop) {
        self.isCancelled = true
        loop.setMoment(nil, for: self)
        self.momentReached(on: loop)
    }

    func received(_ event: HTTPEvent, on loop: HTTPLoop) {}

    func momentReached(on loop: HTTPLoop) {
        self.continuation?.resume()
        self.continuation = nil
    }
}

extension HTTPClient {
    /// Sends `request` and waits for the whole answer. Events of other requests are lost meanwhile, so this is for
    /// clients that do one thing at a time.
    package func perform(_ request: HTTPRequest) throws(HTTPClientError) -> HTTPResponse {
        let id = try self.start(request)
        while true {
            for case .ended(id, let result) in self.poll(timeoutMilliseconds: 1000) { return try result.get() }
        }
    }
}
