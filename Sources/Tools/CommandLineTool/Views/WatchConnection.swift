import Glibc
import HTTPClient
import Platform
import Wire

/// Polls a gateway for the state of a subject. Detects that the gateway has become unreachable, and that it answers
/// again.
final class WatchConnection {
    /// A result of polling.
    enum News {
        /// The samples of the recent past.
        case past(JSONValue)
        /// The current state of the subject, and the answer's text.
        case event(JSONValue, text: String)
        /// The gateway does not answer; the value is the reason. Polling continues.
        case lost(String)
    }

    /// The time without any data, in milliseconds, after which the gateway counts as unreachable. The event stream
    /// sends an event every second.
    private static let silenceMax: Int64 = 5000
    private static let eventBytesMax = 4 << 20

    private let location: GatewayLocation
    private let client: HTTPClient
    /// The path to poll; nil for the state of the gateway itself, which is read from an event stream.
    private let path: String?
    /// The interval between two requests, in milliseconds.
    private let interval: Int64
    private var past: HTTPRequestID?
    private var request: HTTPRequestID?
    private var reader = EventStreamReader(eventBytesMax: WatchConnection.eventBytesMax)
    private var answeredAt = SystemClock.monotonic
    private var asksAt = SystemClock.monotonic
    private var backoff = Backoff(firstMilliseconds: 500, lastMilliseconds: 3000)
    private var random = RandomBits()
    private var hasAnswered: Bool

    /// - Parameters:
    ///   - path: the path to poll; nil for the gateway itself.
    ///   - location: the gateway to poll.
    ///   - interval: the interval between two requests, in milliseconds.
    ///   - hasAnswered: true if the gateway has answered before. If false, an unreachable gateway is an error.
    init(
        _ path: String?,
        _ location: GatewayLocation,
        interval: Int64 = 1000,
        hasAnswered: Bool = false
    ) throws(CommandFailure) {
        self.hasAnswered = hasAnswered
        self.path = path
        self.interval = interval
        self.location = location
        self.client = try location.client()
    }

    /// Waits for news until the next request is due or one of `descriptors` is readable, but at most a second.
    ///
    /// - Throws: `CommandFailure` if the gateway refuses the request or was never reachable.
    func next(_ descriptors: [Int32]) throws(CommandFailure) -> [News] {
        try self.askIfDue()
        let now = SystemClock.monotonic
        let until = self.request == nil ? self.asksAt : self.answeredAt + Self.silenceMax
        let events = self.client.poll(
            timeoutMilliseconds: Int(max(0, min(1000, until - now))),
            descriptors: descriptors.map { PollDescriptor($0, .readable) }
        )
        var news: [News] = []
        for event in events { news += try self.take(event) }
        if self.request != nil, SystemClock.monotonic - self.answeredAt > Self.silenceMax {
            news.append(try self.lost("it has been silent for \(Self.silenceMax / 1000) seconds"))
        }
        return news
    }

    private func askIfDue() throws(CommandFailure) {
        guard self.request == nil, SystemClock.monotonic >= self.asksAt else { return }
        self.answeredAt = SystemClock.monotonic
        do throws(HTTPClientError) {
            if let path = self.path {
                self.request = try self.client.start(self.location.request("GET", path))
            } else {
                self.reader = EventStreamReader(eventBytesMax: Self.eventBytesMax)
                self.past = try self.client.start(self.location.request("GET", "/v1/samples?every=1"))
                var request = self.location.request("GET", "/v1/live")
                request.isStreaming = true
                request.timeoutMilliseconds = nil
                self.request = try self.client.start(request)
            }
        } catch {
            throw self.location.failure(error)
        }
    }

    private func take(_ event: HTTPEvent) throws(CommandFailure) -> [News] {
        switch event {
        case .head(let id, let response):
            guard id == self.request else { return [] }
            self.answeredAt = SystemClock.monotonic
            self.reader.began(response)
            return []
        case .body(let id, let bytes):
            guard id == self.request else { return [] }
            self.answeredAt = SystemClock.monotonic
            guard let events = try? self.reader.received(bytes) else {
                return [try self.lost("it sends an event longer than \(Self.eventBytesMax) bytes")]
            }
            return events.compactMap { event in
                let text = String(decoding: event.data, as: UTF8.self)
                guard let value = try? JSONReader.read(text) else { return nil }
                self.answered()
                return .event(value, text: text)
            }
        case .ended(let id, let result): return try self.ended(id, result)
        }
    }

    private func ended(
        _ id: HTTPRequestID,
        _ result: Result<HTTPResponse, HTTPClientError>
    ) throws(CommandFailure) -> [News] {
        if id == self.past {
            self.past = nil
            guard case .success(let response) = result, response.isSuccess else { return [] }
            return [.past(try GatewayAnswer.object(response))]
        }
        guard id == self.request else { return [] }
        switch self.path == nil ? result.map(self.reader.whole) : result {
        case .failure(let error):
            guard self.hasAnswered else { throw self.location.failure(error) }
            return [try self.lost(self.location.explain(error))]
        case .success(let response):
            guard response.isSuccess else {
                if response.status < 500 || !self.hasAnswered { try GatewayAnswer.check(response) }
                return [try self.lost(GatewayAnswer.refusal(response))]
            }
            guard self.path != nil else { return [try self.lost("it has ended the stream")] }
            self.request = nil
            self.asksAt = SystemClock.monotonic + self.interval
            self.answered()
            return [.event(try GatewayAnswer.object(response), text: response.text)]
        }
    }

    private func answered() {
        self.hasAnswered = true
        self.answeredAt = SystemClock.monotonic
        self.backoff.succeeded()
    }

    private func lost(_ cause: String) throws(CommandFailure) -> News {
        guard self.hasAnswered else { throw .failed("the gateway cannot be watched: \(cause)") }
        for id in [self.request, self.past].compactMap(\.self) { self.client.cancel(id) }
        self.request = nil
        self.past = nil
        self.asksAt = SystemClock.monotonic + Int64(self.backoff.failed(using: &self.random))
        return .lost(cause)
    }
}
