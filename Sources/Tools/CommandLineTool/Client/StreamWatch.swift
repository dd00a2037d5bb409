import Glibc
import HTTPClient
import Platform
import Wire

/// Prints the events of a gateway's event stream as they arrive. When the stream ends, opens it again.
struct StreamWatch {
    /// The time in milliseconds without any data after which the stream counts as lost. The gateway sends a comment
    /// every 15 seconds.
    private static let silenceMax: Int64 = 45_000
    private static let eventBytesMax = 1 << 16

    /// The reason why a stream has ended.
    private enum Ending {
        /// A signal was received.
        case stopped
        /// The stream was lost for a temporary reason. A retry may succeed.
        case lost(String)
    }

    let path: String
    /// The messages for an opened stream, and the verb for an opening that failed.
    let words: (opened: String, opening: String)
    /// True if the lines are JSON.
    let isJSON: Bool
    /// A function that returns the location. It is called for each stream, because a token file may have been replaced.
    let location: @Sendable () throws(CommandFailure) -> GatewayLocation
    /// A function that returns the line for an event, without a line feed; nil to skip the event.
    let line: (ServerSentEvent) -> String?
    /// The number of streams that the gateway has accepted.
    var streams = 0

    /// Prints events until SIGINT or SIGTERM.
    ///
    /// - Returns: the exit status.
    /// - Throws: `CommandFailure` if the gateway refuses the stream or was never reachable.
    mutating func run() throws(CommandFailure) -> Int32 {
        guard let signals = SignalPipe.open([SIGINT, SIGTERM]) else {
            throw .failed("signals cannot be watched; close some files and try again")
        }
        var backoff = Backoff()
        var random = RandomBits()
        while true {
            let before = self.streams
            switch try self.stream(signals) {
            case .stopped: return 0
            case .lost(let cause):
                guard self.streams > 0 else { throw .failed(cause) }
                if self.streams > before { backoff.succeeded() }
                let wait = backoff.failed(using: &random)
                Console.error("wakegate: \(cause); \(self.words.opening) again in \(wait) ms")
                guard self.isQuiet(signals, milliseconds: Int64(wait)) else { return 0 }
            }
        }
    }

    /// Waits for the given time. Returns false if a signal was received.
    private func isQuiet(_ signals: Int32, milliseconds: Int64) -> Bool {
        let end = SystemClock.monotonic + milliseconds
        while true {
            if !SignalPipe.read(signals).isEmpty { return false }
            let left = end - SystemClock.monotonic
            guard left > 0 else { return true }
            Descriptor.wait(for: signals, .readable, milliseconds: Int32(clamping: left))
        }
    }

    /// Reads one stream, from its request to its end.
    private mutating func stream(_ signals: Int32) throws(CommandFailure) -> Ending {
        let location = try self.location()
        let client = try location.client()
        var request = location.request("GET", self.path)
        request.headers.append(("accept", "text/event-stream"))
        request.isStreaming = true
        request.timeoutMilliseconds = nil
        do throws(HTTPClientError) { _ = try client.start(request) } catch { throw location.failure(error) }
        var reader = EventStreamReader(eventBytesMax: Self.eventBytesMax)
        var heardAt = SystemClock.monotonic
        while true {
            let left = heardAt + Self.silenceMax - SystemClock.monotonic
            guard left > 0 else { return .lost("nothing came from \(location.url) for \(Self.silenceMax / 1000) s") }
            let events = client.poll(
                timeoutMilliseconds: Int(left),
                descriptors: [PollDescriptor(signals, .readable)]
            )
            if !SignalPipe.read(signals).isEmpty { return .stopped }
            if !events.isEmpty { heardAt = SystemClock.monotonic }
            for event in events {
                switch event {
                case .head(_, let response):
                    reader.began(response)
                    if response.isSuccess { self.opened(location) }
                case .body(_, let bytes):
                    if let ending = self.show(bytes, &reader, signals) { return ending }
                case .ended(_, let result): return try self.ending(result.map(reader.whole), location)
                }
            }
        }
    }

    private mutating func opened(_ location: GatewayLocation) {
        self.streams += 1
        Console.error("wakegate: \(self.words.opened) at \(location.url)")
    }

    /// Prints the complete events. Returns the reason if the stream must end; nil otherwise.
    private func show(_ bytes: [UInt8], _ reader: inout EventStreamReader, _ signals: Int32) -> Ending? {
        guard let events = try? reader.received(bytes) else {
            return .lost("the gateway sent an event of more than \(Self.eventBytesMax) bytes")
        }
        for event in events {
            guard let line = self.line(event) else { continue }
            let isWritten = Console.out("\(line)\n", isJSON: self.isJSON, until: signals)
            guard isWritten else { return .stopped }
        }
        return nil
    }

    private func ending(
        _ result: Result<HTTPResponse, HTTPClientError>,
        _ location: GatewayLocation
    ) throws(CommandFailure) -> Ending {
        switch result {
        case .failure(let error):
            guard [.unreachable, .timedOut, .broken].contains(error.code) else { throw location.failure(error) }
            return .lost(location.explain(error))
        case .success(let response) where response.isSuccess: return .lost("the gateway ended the stream")
        case .success(let response):
            let text = GatewayAnswer.refusal(response)
            guard response.status >= 500 || response.status == 429 else { throw .failed(text) }
            return .lost(text)
        }
    }
}

extension ServerSentEvent {
    /// The data as one line. Line feeds can be replaced with spaces, because JSON strings never contain a line feed.
    var dataLine: String {
        String(decoding: self.data.map { $0 == UInt8(ascii: "\n") ? UInt8(ascii: " ") : $0 }, as: UTF8.self)
    }
}

extension CommandDefinition {
    package static let events = CommandDefinition(
        "events",
        "follow the gateway's events: pushes, refusals, wakes and results",
        options: [
            OptionDefinition("--topic", "TOPIC", "only events of one topic"),
            OptionDefinition("--device", "TOKEN", "only events of one device"),
            OptionDefinition(
                "--outcome",
                "WORD",
                "only these outcomes: refused, launched, coalesced, failed, expired,lost, BadDeviceToken, ...",
                isRepeatable: true
            ),
            OptionDefinition("--json", "", "print each event unchanged, one JSON object per line"),
        ] + OptionDefinition.client,
        example: "wakegate events --topic com.example.app --outcome refused",
        notes: [
            """
            It prints events from now on. If the connection ends, the command follows again as soon as the gateway is
            back; events in the meantime are not printed. If it reads too slowly, it prints the number of missed events.
            After SIGINT or SIGTERM it exits with status 0. For earlier events, `wakegate device events TOKEN` lists all
            events of a device, `wakegate stats --device TOKEN` the last 32, and `wakegate push list` lists pushes.
            """
        ],
        run: EventsCommand.run
    )
}

/// `wakegate events`.
package enum EventsCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let isJSON = parsed.isSet("--json")
        if !isJSON, parsed.isSet("--topic") || parsed.isSet("--device") {
            let location = try GatewayLocation(parsed, side: .admin)
            try parsed.noteUnknown(location, try location.client())
        }
        var watch = StreamWatch(path: self.path(parsed), words: ("following", "following"), isJSON: isJSON) {
            () throws(CommandFailure) in
            try GatewayLocation(parsed, side: .admin)
        } line: { event in
            guard let news = LiveNews(name: event.name, data: event.data) else { return nil }
            return isJSON ? self.json(news, event) : EventText.line(news)
        }
        return try watch.run()
    }

    /// Returns the path of the stream, with its filters.
    package static func path(_ parsed: ParsedCommand) -> String {
        let query = ["topic", "device", "outcome"].compactMap(parsed.parameter)
        return query.isEmpty ? "/v1/events" : "/v1/events?\(query.joined(separator: "&"))"
    }

    private static func json(_ news: LiveNews, _ event: ServerSentEvent) -> String {
        switch news {
        case .event: event.dataLine
        // The object has the member `event`, as on all other lines.
        case .missed(let count): #"{"event":"missed","count":\#(count)}"#
        }
    }
}
