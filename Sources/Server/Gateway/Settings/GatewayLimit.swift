package import Engine
package import HTTPTransport
import Storage
import Wire

/// A limit in the configuration, the help and the manual: the key `limits.NAME`.
package struct GatewayLimit: Sendable {
    /// The name within `limits`, such as `devicesMax`.
    package let name: String
    /// The unit, in the plural.
    package let unit: String
    /// The valid values.
    package let range: ClosedRange<Int>
    /// The limited quantity, as a noun phrase.
    package let summary: String
    /// The rationale for the default and when to change it.
    package let rationale: String
    /// The name of the counter in `GET /v1/stats` for how often the limit was reached. Two limits that form a pair
    /// share a counter.
    package let counterName: String
    /// The field that stores the value.
    package let field: any WritableKeyPath<GatewayLimits, Int> & Sendable

    private init(
        _ name: String,
        unit: String? = nil,
        _ range: ClosedRange<Int>,
        _ field: any WritableKeyPath<GatewayLimits, Int> & Sendable,
        countedAs counterName: String? = nil,
        _ summary: String,
        _ rationale: String
    ) {
        self.counterName = counterName ?? name
        self.name = name
        self.unit = unit ?? Self.unitsInNames.first { name.contains($0) }?.lowercased() ?? ""
        self.range = range
        self.field = field
        self.summary = summary
        self.rationale = rationale
    }

    /// The units that stand in names, such as `headerListBytesMax`.
    private static let unitsInNames = ["Bytes", "Seconds", "Frames", "Percent"]

    /// The default value.
    package var defaultValue: Int { GatewayLimits()[keyPath: self.field] }

    /// The rule for the value, for messages and manuals.
    package var requirement: String {
        "a whole number of \(self.unit) from \(self.range.lowerBound) to \(self.range.upperBound)"
            + (self.isDuration ? DurationText.alternative : "")
    }

    /// True if the limit is a duration. It may then be written as text, such as `"10m"`.
    var isDuration: Bool { self.unit == "seconds" }
}

extension GatewayLimit {
    /// All limits, grouped by the resource that they protect.
    package static let all = GatewayLimit.counts + GatewayLimit.bytes + GatewayLimit.times + GatewayLimit.frames

    /// The names of all counters, in the order of the output. The last counter is for connections without a descriptor,
    /// which is a limit of the system.
    package static let counterNames =
        GatewayLimit.all.filter { $0.name == $0.counterName }.map(\.name) + [TransportLimit.openFiles.rawValue]

    /// The counters of limits that are often reached in normal operation, for example because work is postponed to the
    /// next turn.
    package static let routineNames: Set<String> = [
        "acceptsPerTurn", "readBytesPerTurn", "requestsAtEngineMax", "outputBytesMax", "outputFramesMax",
        "streamingBytesSoftMax", "wakeBytesPerStreamMax", "historyBytesMax", "historySeconds", "idleSeconds",
        "lingerSeconds",
    ]

    private static let counts = [
        GatewayLimit(
            "devicesMax",
            unit: "devices",
            1...1_000_000_000,
            \.engine.devicesMax,
            "the most device tokens kept, removed ones included",
            "Protects memory: ten million devices take 3 GB idle, and 6 GB with a pending push of 228 bytes each."
        ),
        GatewayLimit(
            "devicesPerTopicMax",
            unit: "devices",
            1...1_000_000_000,
            \.engine.devicesPerTopicMax,
            "the most device tokens kept of one topic, removed ones included",
            "Unlimited in effect, because a gateway may serve one app alone; lower it where one app must not use "
                + "up `devicesMax`."
        ),
        GatewayLimit(
            "topicsMax",
            unit: "topics",
            1...1_000_000,
            \.engine.topicsMax,
            "the most topics kept",
            "A topic is an app, and each worker names its own; raise it only for more apps."
        ),
        GatewayLimit(
            "pushesPerDeviceMax",
            unit: "pushes",
            0...65_535,
            \.engine.pushRate.pushesMax,
            "the most pushes for one device within `pushesPerDeviceSeconds`; 0: no limit",
            "Protects a device against a backend in a loop: a hundred a second is far more than a backend needs. "
                + "0 in `wakegate dev`."
        ),
        GatewayLimit(
            "connectionsMax",
            unit: "connections",
            1...1_000_000,
            \.transport.connectionsMax,
            "the most open connections",
            "Protects memory: each connection takes a descriptor and about 60 KiB with TLS. Raise the limit of "
                + "open files with it."
        ),
        GatewayLimit(
            "connectionsPerAddressMax",
            unit: "connections",
            0...1_000_000,
            \.transport.connectionsPerAddressMax,
            "the most connections from one address; 0: no limit",
            "A quarter of `connectionsMax`, because a whole fleet may share one address. An IPv6 network of 64 "
                + "bits counts as one address, a proxy counts as one address for all its clients, and a Unix socket "
                + "has none. 0 in `wakegate dev`."
        ),
        GatewayLimit(
            "connectionsPerCredentialMax",
            unit: "connections",
            0...1_000_000,
            \.connectionsPerCredentialMax,
            "the most connections of one provider key, bearer token or client certificate; 0: no limit",
            "A quarter of `connectionsMax`, because a fleet may share one credential."
        ),
        GatewayLimit(
            "streamsPerCredentialMax",
            unit: "streams",
            0...1_000_000,
            \.streamsPerCredentialMax,
            "the most worker streams of one bearer token, client certificate, or address without either; 0: no limit",
            "Two streams for each connection that a credential may open. 0 in `wakegate dev`."
        ),
        GatewayLimit(
            "streamsPerDeviceMax",
            unit: "streams",
            0...1_000_000,
            \.engine.streamsPerDeviceMax,
            "the most worker streams that name one device; 0: no limit",
            "One stream of the device's own worker, and room for streams whose end the gateway has not noticed yet."
        ),
        GatewayLimit(
            "taskRequestsMax",
            unit: "requests",
            1...1_000_000_000,
            \.engine.taskRequestsMax,
            "the most requests of background tasks and sessions, waiting or running",
            "Protects memory: two requests for each device of `devicesMax`."
        ),
        GatewayLimit(
            "submissionsPerCredentialMax",
            unit: "submissions",
            0...1_000_000_000,
            \.submissionsPerCredentialMax,
            "the most submissions of tasks and finished sessions in a minute of one bearer token, client "
                + "certificate, or address without either; 0: no limit",
            "Ten thousand a second, because a fleet may share one credential. 0 in `wakegate dev`."
        ),
        GatewayLimit(
            "progressPerCredentialMax",
            unit: "reports",
            0...1_000_000_000,
            \.progressPerCredentialMax,
            "the most progress reports of continued tasks in a minute, counted like submissions; 0: no limit",
            "Ten thousand a second, because a fleet may share one credential. 0 in `wakegate dev`."
        ),
        GatewayLimit(
            "handshakesMax",
            unit: "connections",
            16...1_000_000,
            \.transport.handshakesMax,
            "the most connections that have not sent HTTP yet",
            "Protects against clients that stop during the TLS handshake: a thousand take 40 MB. A new connection "
                + "beyond it closes the oldest."
        ),
        GatewayLimit(
            "streamsPerConnectionMax",
            unit: "streams",
            1...100_000,
            \.transport.streamsPerConnectionMax,
            "the most open streams of one connection",
            "The value that APNs announces."
        ),
        GatewayLimit(
            "streamsPerLoopMax",
            unit: "streams",
            100...10_000_000,
            \.transport.streamsPerLoopMax,
            "the most open streams of one event loop",
            "A hundred connections with every stream open; each stream may hold a header list and a body. A connection "
                + "may have an 8,192nd of this limit in any case."
        ),
        GatewayLimit(
            "acceptsPerTurn",
            unit: "connections",
            1...1_024,
            \.transport.acceptsPerTurn,
            "the most connections that an event loop accepts in one turn",
            "Few, so that the loops share a burst of connections."
        ),
        GatewayLimit(
            "requestsAtEngineMax",
            unit: "pushes",
            16...100_000,
            \.requestsAtEngineMax,
            "the most unanswered pushes of one event loop",
            "One commit's worth; until answers arrive the loop reads hardly more, so that waiting pushes stay in the "
                + "processor's cache."
        ),
        GatewayLimit(
            "liveStreamsMax",
            unit: "streams",
            0...1_000,
            \.liveStreamsMax,
            "the most open streams of `GET /v1/live`; 0: none",
            "Enough for every operator's dashboard."
        ),
        GatewayLimit(
            "eventStreamsMax",
            unit: "streams",
            0...1_000,
            \.eventStreamsMax,
            "the most open streams of `GET /v1/events`; 0: none",
            "Enough for every operator's terminal and dashboard."
        ),
        GatewayLimit(
            "eventsHeldMax",
            unit: "events",
            16...1_000_000,
            \.eventsHeldMax,
            "the most events held for followers that read slowly",
            "About 2 MB, and only while a client follows. Raise it if followers report missed events."
        ),
    ]

    private static let bytes = [
        GatewayLimit(
            "headerListBytesMax",
            4_096...16_384,
            \.transport.headerListBytesMax,
            "the most bytes of the header fields of one request",
            "The value that APNs announces."
        ),
        GatewayLimit(
            "frameBytesMax",
            16_384...16_777_215,
            \.transport.frameBytesMax,
            "the largest HTTP/2 frame accepted",
            "The least that HTTP/2 allows, and three times the largest payload."
        ),
        GatewayLimit(
            "streamWindowBytes",
            16_384...2_147_483_647,
            \.transport.streamWindowBytes,
            "the HTTP/2 window of one stream",
            "The value that APNs announces; the largest payload fits in it many times."
        ),
        GatewayLimit(
            "connectionWindowBytes",
            65_535...2_147_483_647,
            \.transport.connectionWindowBytes,
            "the HTTP/2 window of one connection",
            "Room for a thousand ordinary pushes."
        ),
        GatewayLimit(
            "readBytesPerTurn",
            16_384...16_777_216,
            \.transport.readBytesPerTurn,
            "the most bytes read from one connection in one turn of its event loop",
            "Four full frames, so that no connection delays the others."
        ),
        GatewayLimit(
            "requestBytesPerConnectionMax",
            32_768...1_073_741_824,
            \.transport.requestBytesPerConnectionMax,
            "the most bytes of incomplete requests of one connection",
            "About 2 KiB of header fields for each of a connection's 1,000 streams."
        ),
        GatewayLimit(
            "requestBytesMax",
            32_768...1_099_511_627_776,
            \.transport.requestBytesMax,
            "the most bytes of incomplete requests of all connections",
            "Two dozen connections that use all of `requestBytesPerConnectionMax`. Each connection may hold an "
                + "8,192nd of the limit (6 KiB) even above it, so that the requests of others never refuse a single "
                + "push or result."
        ),
        GatewayLimit(
            "pendingBytesMax",
            0...1_099_511_627_776,
            \.pendingBytesMax,
            "the most bytes of pending pushes and pushes in flight; 0: half of the memory",
            "Protects memory. The memory is that of the machine, or of the control group of the process."
        ),
        GatewayLimit(
            "pendingTopicPercentMax",
            1...100,
            \.pendingTopicPercentMax,
            "the largest share of `pendingBytesMax` for one topic",
            "Leaves a fifth to the other topics."
        ),
        GatewayLimit(
            "taskBytesMax",
            0...1_099_511_627_776,
            \.taskBytesMax,
            "the most bytes of background tasks and sessions, waiting or running; 0: an eighth of the memory",
            "Protects memory: counts identifiers, titles and the ids of session events. The memory is that of the "
                + "machine, or of the control group of the process."
        ),
        GatewayLimit(
            "taskTopicPercentMax",
            1...100,
            \.taskTopicPercentMax,
            "the largest share of `taskRequestsMax` and `taskBytesMax` for one topic",
            "Leaves a fifth to the other topics."
        ),
        GatewayLimit(
            "wakeBytesPerStreamMax",
            4_096...1_073_741_824,
            \.wakeBytesPerStreamMax,
            "the most bytes of unanswered payloads of one worker stream",
            "4,096 ordinary wakes. A worker that does not read holds this much memory, and three times as much if "
                + "its payloads consist of escapes."
        ),
        GatewayLimit(
            "discardedBytesMax",
            0...1_073_741_824,
            \.transport.discardedBytesMax,
            "the most bytes read of a body that is too large",
            "Enough for most clients to read the refusal."
        ),
        GatewayLimit(
            "outputBytesMax",
            16_384...16_777_216,
            \.transport.outputBytesMax,
            "the most bytes written ahead for one connection",
            "About what a socket takes at once, and most of what a peer that stops reading costs."
        ),
        GatewayLimit(
            "streamingBytesSoftMax",
            16_384...1_073_741_824,
            \.transport.streamingBytesSoftMax,
            "the most bytes of unread events of one stream before it gets no more",
            "More than any burst that a worker leaves unread while it keeps up."
        ),
        GatewayLimit(
            "queuedBytesPerConnectionMax",
            65_536...1_073_741_824,
            \.transport.queuedBytesPerConnectionMax,
            "the most unread bytes of one connection before it is closed",
            "Sixteen streams with `streamingBytesSoftMax` each."
        ),
        GatewayLimit(
            "historyBytesMax",
            4_194_304...1_099_511_627_776,
            \.historyBytesMax,
            "the largest delivery log",
            "Six million events of about 40 bytes. Raise it if the events of `historySeconds` need more."
        ),
    ]

    private static let times = [
        GatewayLimit(
            "handshakeSeconds",
            1...600,
            \.transport.handshakeSeconds,
            "the time limit for a TLS handshake",
            "Many round trips of the slowest network."
        ),
        GatewayLimit(
            "pushesPerDeviceSeconds",
            1...86_400,
            \.engine.pushRate.seconds,
            countedAs: "pushesPerDeviceMax",
            "the period of `pushesPerDeviceMax`, which begins with a device's first push after the previous period",
            "Beyond the limit a push is refused with 429 TooManyRequests until the period ends."
        ),
        GatewayLimit(
            "requestSeconds",
            1...3_600,
            \.transport.requestSeconds,
            "the time limit for receiving a request",
            "The largest request arrives in time at 220 bytes a second. The same limit holds for a frame, a field "
                + "block and the acknowledgment of SETTINGS."
        ),
        GatewayLimit(
            "responseSeconds",
            1...3_600,
            \.transport.responseSeconds,
            "the time limit for sending a response",
            "As long as a request may take; event streams are exempt."
        ),
        GatewayLimit(
            "writeStallSeconds",
            1...3_600,
            \.transport.writeStallSeconds,
            "the time after which a connection that accepts no data is closed",
            "As long as a response may take."
        ),
        GatewayLimit(
            "idleSeconds",
            1...604_800,
            \.transport.idleSeconds,
            "the time after which an idle connection is closed",
            "APNs keeps an idle connection for an hour."
        ),
        GatewayLimit(
            "pingSeconds",
            1...600,
            \.transport.pingSeconds,
            "the time limit for the answer to a PING",
            "As long as a handshake may take."
        ),
        GatewayLimit(
            "historySeconds",
            60...315_360_000,
            \.historySeconds,
            "the age at which events leave the delivery log",
            "A week, to look back over a weekend."
        ),
        GatewayLimit(
            "lingerSeconds",
            0...60,
            \.transport.lingerSeconds,
            "how long a peer may still read the last bytes of a connection that the gateway ends",
            "A few round trips."
        ),
    ]

    private static let frames = [
        GatewayLimit(
            "outputFramesMax",
            1...1_000_000,
            \.transport.outputFramesMax,
            "the most frames that wait to be written to one connection",
            "Two for each stream that a connection may open."
        ),
        GatewayLimit(
            "continuationFramesMax",
            1...1_000_000,
            \.transport.continuationFramesMax,
            "the most CONTINUATION frames of one field block",
            "The largest header list needs none; protects against floods."
        ),
        GatewayLimit(
            "controlFramesBurst",
            100...1_000_000,
            \.transport.controlFramesBurst,
            countedAs: "controlFramesPerSecond",
            "the most control frames of one connection at once: PING, SETTINGS, PRIORITY, RST_STREAM, GOAWAY, "
                + "CONTINUATION, empty DATA and TLS records without data",
            "A client may reset every stream that it has open. WINDOW_UPDATE has a separate budget of the same "
                + "size. A stream that the gateway resets for a fault of its request counts, too."
        ),
        GatewayLimit(
            "controlFramesPerSecond",
            1...1_000_000,
            \.transport.controlFramesPerSecond,
            "the control frames of one connection a second, beyond the burst",
            "Far more than a well-behaved client sends."
        ),
    ]
}

/// All limits that an operator can set, with their values.
package struct GatewayLimits: Sendable {
    /// The limits on connections, streams and HTTP.
    package var transport = TransportLimits()
    /// The limits of the engine, with its default policies. `GatewayConfiguration.engine` adds all other settings.
    package var engine = EngineConfiguration()

    /// The maximum number of connections with one provider key, bearer token or client certificate; 0 for no limit.
    package var connectionsPerCredentialMax = 5_000
    /// The maximum number of workers' streams with one bearer token, client certificate or, without either, from one
    /// address; 0 for no limit.
    package var streamsPerCredentialMax = 10_000
    /// The maximum number of open streams of `GET /v1/live`.
    package var liveStreamsMax = 32
    /// The maximum number of open streams of `GET /v1/events`.
    package var eventStreamsMax = 32
    /// The maximum number of events that are queued for an operator who follows events.
    package var eventsHeldMax = 8192
    /// The maximum number of pushes of one loop that the engine has not answered. At the limit the loop stops reading.
    /// Clients that send little may still send 64 KiB; see `PushWindow`.
    package var requestsAtEngineMax = 512
    /// The maximum size of pending and in-flight pushes, in bytes; 0 for half of the machine's memory.
    package var pendingBytesMax = 0
    /// The share of `pendingBytesMax` that one topic may use, in percent.
    package var pendingTopicPercentMax = 80
    /// The maximum size in bytes of the texts of background tasks and sessions: names, titles, and ids of session
    /// events. The value 0 means an eighth of the machine's memory.
    package var taskBytesMax = 0
    /// The share of `engine.taskRequestsMax` and of `taskBytesMax` that one topic may use, in percent.
    package var taskTopicPercentMax = 80
    /// The maximum number of submissions per minute with one bearer token, client certificate or, without either, from
    /// one address; 0 for no limit.
    package var submissionsPerCredentialMax = 600_000
    /// The maximum number of progress reports per minute, counted like submissions; 0 for no limit.
    package var progressPerCredentialMax = 600_000
    /// The maximum number of unanswered payload bytes on a worker's stream.
    package var wakeBytesPerStreamMax = 4_194_304

    /// The maximum size of the history's file in bytes.
    package var historyBytesMax = HistoryLimits().bytesMax
    /// The time for which the history keeps an event, in seconds.
    package var historySeconds = Int(HistoryLimits().ageMillisecondsMax / 1000)

    package init() {}

    /// Removes the limits that would hinder a backend under development.
    package mutating func liftForDevelopment() {
        // Load tests of backends need many pushes to a device. For tests of the answer 429, there are fault rules.
        self.engine.pushRate.pushesMax = 0
        // All clients have the same address, so limits per address would apply to all clients together.
        self.transport.connectionsPerAddressMax = 0
        self.streamsPerCredentialMax = 0
        self.submissionsPerCredentialMax = 0
        self.progressPerCredentialMax = 0
    }
}

/// The counted limits outside the transport and the engine, by their names in the configuration. Each case documents
/// the effect of reaching the limit.
package enum GatewayCountedLimit: String, CountedLimit {
    /// A loop stops reading until the engine has answered some pushes.
    case requestsAtEngineMax
    /// A request or a connection is refused.
    case connectionsPerCredentialMax
    /// A worker's stream is refused.
    case streamsPerCredentialMax
    /// A submission of a background task or a report of a finished session is refused.
    case submissionsPerCredentialMax
    /// A progress report is refused.
    case progressPerCredentialMax
    /// An operator's stream of `GET /v1/live` is refused.
    case liveStreamsMax
    /// An operator's stream of `GET /v1/events` is refused.
    case eventStreamsMax
    /// Events for an operator who follows them slowly are dropped.
    case eventsHeldMax
    /// The oldest events are deleted from the history because of its size.
    case historyBytesMax
    /// Events are deleted from the history because of their age.
    case historySeconds
}
