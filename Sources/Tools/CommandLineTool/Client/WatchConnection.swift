import Glibc
import HTTPClient
import Platform
import Wire

/// Polls a path of a gateway, or follows an event stream. Detects that the gateway has become unreachable, and that it
/// answers again.
final class WatchConnection {
    /// The path to read, and the limits of reading.
    struct Source {
        let path: String
        /// The interval between two requests, in milliseconds; nil for an event stream.
        var interval: Int64?
        /// The path of the samples of the recent past; nil if they are not needed.
        var pastPath: String?
        /// The time without any data, in milliseconds, after which the gateway counts as unreachable.
        var silenceMax: Int64 = 5000
        var eventBytesMax = 4 << 20
        var backoff = Backoff(firstMilliseconds: 500, lastMilliseconds: 3000)

        static func poll(_ path: String, interval: Int64 = 1000) -> Source { Source(path: path, interval: interval) }

        /// The state of the gateway itself. Its stream sends an event every second.
        static let live = Source(path: "/v1/live", pastPath: "/v1/samples?every=1")

        /// A stream of events. The gateway sends a comment on it every 15 seconds.
        static func stream(_ path: String) -> Source {
            Source(path: path, silenceMax: 45_000, eventBytesMax: 1 << 16, backoff: Backoff())
        }
    }

    /// A result of reading.
    enum News {
        /// The samples of the recent past.
        case past(JSONValue)
        /// The gateway with this URL has opened the stream.
        case opened(String)
        /// An event of the stream, or an answer; and its data as JSON.
        case event(ServerSentEvent, JSONValue)
        /// The gateway does not answer; the values are the reason, and the milliseconds until the next request.
        case lost(String, wait: Int)
    }

    typealias Locate = @Sendable () throws(CommandFailure) -> GatewayLocation

    private let source: Source
    private let relocate: Locate?
    private var location: GatewayLocation
    private var client: HTTPClient
    private var past: HTTPRequestID?
    private var request: HTTPRequestID?
    private var reader = EventStreamReader()
    private var answeredAt = SystemClock.monotonic
    private var asksAt = SystemClock.monotonic
    private var backoff: Backoff
    private var random = RandomBits()
    private var hasAnswered: Bool
    private var isLost = false

    /// - Parameters:
    ///   - source: the path to read.
    ///   - location: the gateway.
    ///   - relocate: returns the location after the gateway was lost; nil to keep the location.
    ///   - hasAnswered: true if the gateway has answered before. If false, an unreachable gateway is an error.
    init(
        _ source: Source,
        _ location: GatewayLocation,
        relocate: Locate? = nil,
        hasAnswered: Bool = false
    ) throws(CommandFailure) {
        self.source = source
        self.relocate = relocate
        self.location = location
        self.client = try location.client()
        self.backoff = source.backoff
        self.hasAnswered = hasAnswered
    }

    /// Creates a connection to the gateway of a command line. Its location is determined again after the gateway was
    /// lost, because a token file may have been replaced.
    convenience init(
        _ source: Source,
        _ parsed: ParsedCommand,
        side: GatewayLocation.Side
    ) throws(CommandFailure) {
        let locate: Locate = { () throws(CommandFailure) in try GatewayLocation(parsed, side: side) }
        try self.init(source, locate(), relocate: locate)
    }

    /// Waits for news until the next request is due or one of `descriptors` is readable, but at most a second.
    ///
    /// - Throws: `CommandFailure` if the gateway refuses the request or was never reachable.
    func next(_ descriptors: [Int32]) throws(CommandFailure) -> [News] {
        try self.askIfDue()
        let now = SystemClock.monotonic
        let until = self.request == nil ? self.asksAt : self.answeredAt + self.source.silenceMax
        let events = self.client.poll(
            timeoutMilliseconds: Int(max(0, min(1000, until - now))),
            descriptors: descriptors.map { Descriptor.Wait($0, .readable) }
        )
        var news: [News] = []
        for event in events { news += try self.take(event) }
        if self.request != nil, SystemClock.monotonic - self.answeredAt > self.source.silenceMax {
            let silence = "it has been silent for \(self.source.silenceMax / 1000) seconds"
            news.append(try self.lost("nothing came from \(self.location.url): \(silence)"))
        }
        return news
    }

    private func askIfDue() throws(CommandFailure) {
        guard self.request == nil, SystemClock.monotonic >= self.asksAt else { return }
        if self.isLost, let relocate = self.relocate {
            self.location = try relocate()
            self.client = try self.location.client()
        }
        self.isLost = false
        self.answeredAt = SystemClock.monotonic
        var request = self.location.request("GET", self.source.path)
        if self.source.interval == nil {
            self.reader = EventStreamReader(eventBytesMax: self.source.eventBytesMax)
            request.headers.append(("accept", "text/event-stream"))
            request.isStreaming = true
            request.timeoutMilliseconds = nil
        }
        do throws(HTTPClientError) {
            if let path = self.source.pastPath {
                self.past = try self.client.start(self.location.request("GET", path))
            }
            self.request = try self.client.start(request)
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
            guard response.isSuccess, self.source.interval == nil else { return [] }
            // A stream with samples sends an event every second, so only an event shows that the gateway answers.
            if self.source.pastPath == nil { self.answered() }
            return [.opened(self.location.url)]
        case .body(let id, let bytes):
            guard id == self.request else { return [] }
            self.answeredAt = SystemClock.monotonic
            guard let events = try? self.reader.received(bytes) else {
                return [try self.lost("the gateway sent an event of more than \(self.source.eventBytesMax) bytes")]
            }
            let news = events.compactMap { event in JSONValue(event.data).map { News.event(event, $0) } }
            if !news.isEmpty { self.answered() }
            return news
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
        switch self.source.interval == nil ? result.map(self.reader.whole) : result {
        case .failure(let error):
            // A view, which has no `relocate`, shows the failure and continues. Other commands end if a retry cannot
            // help.
            guard self.hasAnswered, self.relocate == nil || error.isPassing else { throw self.location.failure(error) }
            return [try self.lost(self.location.explain(error))]
        case .success(let response):
            guard response.isSuccess else {
                if !response.isPassing || !self.hasAnswered { try GatewayAnswer.check(response) }
                return [try self.lost(GatewayAnswer.refusal(response))]
            }
            guard let interval = self.source.interval else { return [try self.lost("the gateway ended the stream")] }
            self.request = nil
            self.asksAt = SystemClock.monotonic + interval
            self.answered()
            let answer = try GatewayAnswer.object(response)
            return [.event(ServerSentEvent(name: "", id: "", data: response.body), answer)]
        }
    }

    private func answered() {
        self.hasAnswered = true
        self.answeredAt = SystemClock.monotonic
        self.backoff.succeeded()
    }

    private func lost(_ cause: String) throws(CommandFailure) -> News {
        guard self.hasAnswered else { throw .failed(cause) }
        for id in [self.request, self.past].compactMap(\.self) { self.client.cancel(id) }
        self.request = nil
        self.past = nil
        self.isLost = true
        let wait = self.backoff.failed(using: &self.random)
        self.asksAt = SystemClock.monotonic + Int64(wait)
        return .lost(cause, wait: wait)
    }
}

// MARK: - Lines

extension WatchConnection {
    /// The text to print about news.
    enum Line {
        /// Whole lines for standard output.
        case output(String)
        /// A line for standard error.
        case note(String)
    }

    /// Returns a pipe from which `signals` can be read.
    static func pipe(of signals: [Int32]) throws(CommandFailure) -> Int32 {
        guard let pipe = SignalPipe.open(signals) else {
            throw .failed("signals cannot be watched; close some files and try again")
        }
        return pipe
    }

    /// Prints a line for each event of a stream until SIGINT or SIGTERM.
    ///
    /// - Parameters:
    ///   - words: the messages for an opened stream, and the verb for an opening that failed.
    ///   - isJSON: true if the lines are JSON.
    ///   - line: returns the line for an event, without a line feed; nil to skip the event.
    /// - Returns: the exit status.
    func printEvents(
        _ words: (opened: String, opening: String),
        isJSON: Bool,
        _ line: (ServerSentEvent) -> String?
    ) throws(CommandFailure) -> Int32 {
        try self.follow(try Self.pipe(of: [SIGINT, SIGTERM]), isJSON: isJSON) { news in
            switch news {
            case .past: nil
            case .opened(let url): .note("wakegate: \(words.opened) at \(url)")
            case .event(let event, _): line(event).map { .output("\($0)\n") }
            case .lost(let cause, let wait): .note("wakegate: \(cause); \(words.opening) again in \(wait) ms")
            }
        }
        return 0
    }

    /// Prints text about the news until a signal arrives.
    ///
    /// - Parameters:
    ///   - signals: the pipe of the signals.
    ///   - isJSON: true if the output is JSON.
    ///   - line: returns the text; nil for none.
    func follow(_ signals: Int32, isJSON: Bool, _ line: (News) -> Line?) throws(CommandFailure) {
        while true {
            for news in try self.next([signals]) {
                switch line(news) {
                case .output(let text)?:
                    guard Console.out(text, isJSON: isJSON, until: signals) else { return }
                case .note(let text)?: Console.error(text)
                case nil: break
                }
            }
            if !SignalPipe.read(signals).isEmpty { return }
        }
    }
}
