import Engine
package import HTTPTransport
import Storage

/// One bound as the configuration, the help and the manual know it: the key `limits.NAME`.
package struct GatewayLimit: Sendable {
    /// The name within `limits`, such as `devicesMax`.
    package let name: String
    /// What is counted, in the plural.
    package let unit: String
    /// The values an operator may set.
    package let range: ClosedRange<Int>
    /// Why the default is what it is, in one sentence.
    package let reason: String
    /// The name under which `GET /v1/stats` says how often it was met: its own, but for the second half of a pair.
    package let countedName: String
    /// Where the value is kept.
    package let field: any WritableKeyPath<GatewayLimits, Int> & Sendable

    private init(
        _ name: String,
        _ unit: String,
        _ range: ClosedRange<Int>,
        _ field: any WritableKeyPath<GatewayLimits, Int> & Sendable,
        countedAs countedName: String? = nil,
        _ reason: String
    ) {
        self.countedName = countedName ?? name
        self.name = name
        self.unit = unit
        self.range = range
        self.field = field
        self.reason = reason
    }

    /// The value when nothing is set.
    package var defaultValue: Int { GatewayLimits()[keyPath: self.field] }

    /// What the value must be, for messages and manuals.
    package var requirement: String {
        "a whole number of \(self.unit) from \(self.range.lowerBound) to \(self.range.upperBound)"
    }
}

extension GatewayLimit {
    /// Every bound, by what it protects.
    package static let all = GatewayLimit.counts + GatewayLimit.bytes + GatewayLimit.times + GatewayLimit.frames

    /// The names of all counters, in the order in which they are shown. The last is no bound of the gateway's: how
    /// often the system had no descriptor for a connection.
    package static let countedNames =
        GatewayLimit.all.filter { $0.name == $0.countedName }.map(\.name) + [TransportLimit.openFiles.rawValue]

    /// The counters of what is met while everything goes well: by work that goes on in the next turn, and by time.
    package static let routineNames: Set<String> = [
        "acceptsPerTurn", "readBytesPerTurn", "requestsAtEngineMax", "outputBytesMax", "outputFramesMax",
        "streamingBytesSoftMax", "wakeBytesPerStreamMax", "historyBytesMax", "historySeconds", "idleSeconds",
        "lingerSeconds",
    ]

    private static let counts = [
        GatewayLimit(
            "devicesMax",
            "devices",
            1...1_000_000_000,
            \.devicesMax,
            "ten million take 3 GB idle, and 9 GB with a push waiting on each."
        ),
        GatewayLimit(
            "devicesPerTopicMax",
            "devices",
            1...1_000_000_000,
            \.devicesPerTopicMax,
            "all of them, as a gateway may serve one app alone; lower it where apps must not crowd each other out."
        ),
        GatewayLimit(
            "topicsMax",
            "topics",
            1...1_000_000,
            \.topicsMax,
            "a topic is an app, and each worker names its own."
        ),
        GatewayLimit(
            "pushesPerDeviceMax",
            "pushes",
            0...65_535,
            \.pushesPerDeviceMax,
            "a hundred a second, far more than a backend has for one device; 0 is no limit."
        ),
        GatewayLimit(
            "connectionsMax",
            "connections",
            1...1_000_000,
            \.transport.connectionsMax,
            "each costs a descriptor and about 60 KiB with TLS; the descriptor limit holds as well."
        ),
        GatewayLimit(
            "connectionsPerAddressMax",
            "connections",
            0...1_000_000,
            \.transport.connectionsPerAddressMax,
            """
            a quarter of all, since a whole fleet may stand behind one address; an IPv6 network of 64 bits is one \
            address, a socket file has none, and a proxy in front has one for all its clients; 0 is no limit, and the \
            default of `wakegate dev`.
            """
        ),
        GatewayLimit(
            "connectionsPerCredentialMax",
            "connections",
            0...1_000_000,
            \.connectionsPerCredentialMax,
            "of a provider key, bearer token or client certificate; a quarter of all, as a fleet may share one; 0 is "
                + "no limit."
        ),
        GatewayLimit(
            "streamsPerCredentialMax",
            "streams",
            0...1_000_000,
            \.streamsPerCredentialMax,
            "of workers, with one bearer token, client certificate, or address that shows neither: two for each "
                + "connection that a credential may have; 0 is no limit, and the default of `wakegate dev`."
        ),
        GatewayLimit(
            "streamsPerDeviceMax",
            "streams",
            0...1_000_000,
            \.streamsPerDeviceMax,
            "that name one device: its own worker, and those that came back before the gateway had noticed that they "
                + "were gone; 0 is no limit."
        ),
        GatewayLimit(
            "taskRequestsMax",
            "requests",
            1...1_000_000_000,
            \.taskRequestsMax,
            "of background tasks, and sessions, that wait or run: two for each device of devicesMax."
        ),
        GatewayLimit(
            "submissionsPerCredentialMax",
            "submissions",
            0...1_000_000_000,
            \.submissionsPerCredentialMax,
            "a minute, of tasks and finished sessions, with one bearer token, client certificate, or address that "
                + "shows neither: ten thousand a second, as a fleet may share one; 0 is no limit, and the default of "
                + "`wakegate dev`."
        ),
        GatewayLimit(
            "progressPerCredentialMax",
            "reports",
            0...1_000_000_000,
            \.progressPerCredentialMax,
            "a minute, of the progress of continued tasks, counted as submissions are; 0 is no limit, and the default "
                + "of `wakegate dev`."
        ),
        GatewayLimit(
            "handshakesMax",
            "connections",
            16...1_000_000,
            \.transport.handshakesMax,
            "those that have not spoken HTTP yet: what a machine takes up in a quarter of a second, and 40 MB when all "
                + "stop half-way; for one more the oldest is ended."
        ),
        GatewayLimit(
            "streamsPerConnectionMax",
            "streams",
            1...100_000,
            \.transport.streamsPerConnectionMax,
            "APNs announces it."
        ),
        GatewayLimit(
            "streamsPerLoopMax",
            "streams",
            100...10_000_000,
            \.transport.streamsPerLoopMax,
            "a hundred connections with every stream open; each may hold a header list and a body."
        ),
        GatewayLimit(
            "acceptsPerTurn",
            "connections",
            1...1_024,
            \.transport.acceptsPerTurn,
            "few at a time, so that the loops share a burst of connections."
        ),
        GatewayLimit(
            "requestsAtEngineMax",
            "pushes",
            16...100_000,
            \.requestsAtEngineMax,
            "a commit's worth of one loop, which reads next to nothing more until answers come: what waits is still in "
                + "the processor's cache."
        ),
        GatewayLimit(
            "liveStreamsMax",
            "streams",
            0...1_000,
            \.liveStreamsMax,
            "of GET /v1/live: every operator's dashboard and a few screens on walls; 0 turns it off."
        ),
        GatewayLimit(
            "eventStreamsMax",
            "streams",
            0...1_000,
            \.eventStreamsMax,
            "of GET /v1/events: an operator's terminals and dashboards; 0 turns it off."
        ),
        GatewayLimit(
            "eventsHeldMax",
            "events",
            16...1_000_000,
            \.eventsHeldMax,
            "for those who follow them and are behind: some 2 MB, and only while somebody follows."
        ),
    ]

    private static let bytes = [
        GatewayLimit(
            "headerListBytesMax",
            "bytes",
            4_096...16_384,
            \.transport.headerListBytesMax,
            "APNs announces it."
        ),
        GatewayLimit(
            "frameBytesMax",
            "bytes",
            16_384...16_777_215,
            \.transport.frameBytesMax,
            "the least that HTTP/2 allows, and three times the largest payload."
        ),
        GatewayLimit(
            "streamWindowBytes",
            "bytes",
            16_384...2_147_483_647,
            \.transport.streamWindowBytes,
            "APNs announces it; the largest payload fits many times."
        ),
        GatewayLimit(
            "connectionWindowBytes",
            "bytes",
            65_535...2_147_483_647,
            \.transport.connectionWindowBytes,
            "a thousand ordinary pushes."
        ),
        GatewayLimit(
            "readBytesPerTurn",
            "bytes",
            16_384...16_777_216,
            \.transport.readBytesPerTurn,
            "four full frames, so that no connection keeps the others waiting."
        ),
        GatewayLimit(
            "requestBytesPerConnectionMax",
            "bytes",
            32_768...1_073_741_824,
            \.transport.requestBytesPerConnectionMax,
            "of requests that have arrived in part: the heads of a connection's 1,000 streams."
        ),
        GatewayLimit(
            "requestBytesMax",
            "bytes",
            32_768...1_099_511_627_776,
            \.transport.requestBytesMax,
            "the same of all connections: two dozen that use all of theirs."
        ),
        GatewayLimit(
            "pendingBytesMax",
            "bytes",
            0...1_099_511_627_776,
            \.pendingBytesMax,
            "of pushes that wait or are in flight; 0 is half of the memory that the machine, or the control group of "
                + "the process, has."
        ),
        GatewayLimit(
            "pendingTopicPercentMax",
            "percent",
            1...100,
            \.pendingTopicPercentMax,
            "of pendingBytesMax for one topic, so that the others have a fifth whatever it does."
        ),
        GatewayLimit(
            "taskBytesMax",
            "bytes",
            0...1_099_511_627_776,
            \.taskBytesMax,
            "of what background tasks and sessions that wait or run are named and entitled, and of the ids of session "
                + "events; 0 is an eighth of the memory that the machine, or the control group of the process, has."
        ),
        GatewayLimit(
            "taskTopicPercentMax",
            "percent",
            1...100,
            \.taskTopicPercentMax,
            "of taskRequestsMax and of taskBytesMax for one topic, so that the others have a fifth whatever it does."
        ),
        GatewayLimit(
            "wakeBytesPerStreamMax",
            "bytes",
            4_096...1_073_741_824,
            \.wakeBytesPerStreamMax,
            "of unanswered payloads: 4,096 slots of ordinary wakes, and the most that waits for a worker that does "
                + "not read; thrice that where they are escapes throughout."
        ),
        GatewayLimit(
            "discardedBytesMax",
            "bytes",
            0...1_073_741_824,
            \.transport.discardedBytesMax,
            "enough for most clients to read why a body was too large."
        ),
        GatewayLimit(
            "outputBytesMax",
            "bytes",
            16_384...16_777_216,
            \.transport.outputBytesMax,
            "about what a socket takes at once, and most of what a peer that stops reading costs."
        ),
        GatewayLimit(
            "streamingBytesSoftMax",
            "bytes",
            16_384...1_073_741_824,
            \.transport.streamingBytesSoftMax,
            "past any burst of events that a reader that keeps up leaves waiting."
        ),
        GatewayLimit(
            "queuedBytesPerConnectionMax",
            "bytes",
            65_536...1_073_741_824,
            \.transport.queuedBytesPerConnectionMax,
            "sixteen streams that their reader leaves at streamingBytesSoftMax."
        ),
        GatewayLimit(
            "historyBytesMax",
            "bytes",
            4_194_304...1_099_511_627_776,
            \.historyBytesMax,
            "six million events, at about 40 bytes each."
        ),
    ]

    private static let times = [
        GatewayLimit(
            "handshakeSeconds",
            "seconds",
            1...600,
            \.transport.handshakeSeconds,
            "many round trips of the slowest network."
        ),
        GatewayLimit(
            "pushesPerDeviceSeconds",
            "seconds",
            1...86_400,
            \.pushesPerDeviceSeconds,
            countedAs: "pushesPerDeviceMax",
            "the window of pushesPerDeviceMax, which a device's first push opens; then 429 TooManyRequests."
        ),
        GatewayLimit(
            "requestSeconds",
            "seconds",
            1...3_600,
            \.transport.requestSeconds,
            "the largest request arrives in it at 220 bytes a second; as long have each frame, each field block and "
                + "the acknowledgement of SETTINGS."
        ),
        GatewayLimit(
            "responseSeconds",
            "seconds",
            1...3_600,
            \.transport.responseSeconds,
            "as long as a request may take; event streams are exempt."
        ),
        GatewayLimit(
            "writeStallSeconds",
            "seconds",
            1...3_600,
            \.transport.writeStallSeconds,
            "as long as an answer may take."
        ),
        GatewayLimit("idleSeconds", "seconds", 1...604_800, \.transport.idleSeconds, "APNs keeps one for an hour."),
        GatewayLimit("pingSeconds", "seconds", 1...600, \.transport.pingSeconds, "as long as a handshake may take."),
        GatewayLimit(
            "historySeconds",
            "seconds",
            60...315_360_000,
            \.historySeconds,
            "a week, to look back at what happened over a weekend."
        ),
        GatewayLimit(
            "lingerSeconds",
            "seconds",
            0...60,
            \.transport.lingerSeconds,
            "a few round trips, so that the last bytes of a connection we end are not lost."
        ),
    ]

    private static let frames = [
        GatewayLimit(
            "outputFramesMax",
            "frames",
            1...1_000_000,
            \.transport.outputFramesMax,
            "two for each stream that a connection may have open."
        ),
        GatewayLimit(
            "continuationFramesMax",
            "frames",
            1...1_000_000,
            \.transport.continuationFramesMax,
            "of one header block, although the largest header list needs none."
        ),
        GatewayLimit(
            "controlFramesBurst",
            "frames",
            100...1_000_000,
            \.transport.controlFramesBurst,
            countedAs: "controlFramesPerSecond",
            "of PING, SETTINGS, PRIORITY, RST_STREAM, GOAWAY, CONTINUATION, empty DATA and TLS records without data "
                + "together, and as many of WINDOW_UPDATE: a client may reset every stream it has open. A stream that "
                + "the gateway resets for a fault in its request counts like one that the client resets."
        ),
        GatewayLimit(
            "controlFramesPerSecond",
            "frames",
            1...1_000_000,
            \.transport.controlFramesPerSecond,
            "far more than a client that keeps to the rules sends."
        ),
    ]
}

/// Every bound of the gateway that an operator can set, with its value.
package struct GatewayLimits: Sendable {
    /// The bounds of connections, streams and HTTP.
    package var transport = TransportLimits()
    /// The most device tokens kept, removed ones included.
    package var devicesMax = EngineConfiguration().devicesMax
    /// The most device tokens kept of one topic, removed ones included.
    package var devicesPerTopicMax = EngineConfiguration().devicesPerTopicMax
    /// The most topics kept.
    package var topicsMax = EngineConfiguration().topicsMax
    /// The most pushes one device takes within `pushesPerDeviceSeconds`; 0 is no limit.
    package var pushesPerDeviceMax = PushRate().pushesMax
    package var pushesPerDeviceSeconds = PushRate().seconds

    /// The most connections of one provider key, bearer token or client certificate; 0 is no limit.
    package var connectionsPerCredentialMax = 5_000
    /// The most workers' streams of one bearer token, client certificate, or address that shows neither; 0 is no limit.
    package var streamsPerCredentialMax = 10_000
    /// The most workers' streams that name one device; 0 is no limit.
    package var streamsPerDeviceMax = EngineConfiguration().streamsPerDeviceMax
    /// The most streams of `GET /v1/live` that are open at once.
    package var liveStreamsMax = 32
    /// The most streams of `GET /v1/events` that are open at once.
    package var eventStreamsMax = 32
    /// The most events that wait for those who follow them.
    package var eventsHeldMax = 8192
    /// The most pushes of one loop that the engine has not answered; with as many the loop reads nothing,
    /// or 64 KiB of those who send little, where others send much. While those do push, there are fewer.
    package var requestsAtEngineMax = 512
    /// The bytes of pushes that wait or are in flight; 0 for half of the machine's memory.
    package var pendingBytesMax = 0
    /// How much of them one topic may have, in percent.
    package var pendingTopicPercentMax = 80
    /// The most requests of background tasks and sessions that wait or run.
    package var taskRequestsMax = EngineConfiguration().taskRequestsMax
    /// The bytes of what those are named and entitled, and of the ids of session events; 0 for an eighth of the
    /// machine's memory.
    package var taskBytesMax = 0
    /// How much of both one topic may have, in percent.
    package var taskTopicPercentMax = 80
    /// The most submissions a minute of one bearer token, client certificate, or address that shows neither; 0 is no
    /// limit.
    package var submissionsPerCredentialMax = 600_000
    /// The most reports of progress a minute of one of these; 0 is no limit.
    package var progressPerCredentialMax = 600_000
    /// The bytes of payloads that a worker's stream may hold unanswered.
    package var wakeBytesPerStreamMax = 4_194_304

    /// The bytes that the history's file stays within.
    package var historyBytesMax = HistoryLimits().bytesMax
    /// How long the history keeps an event.
    package var historySeconds = Int(HistoryLimits().ageMillisecondsMax / 1000)

    package init() {}

    /// Takes away the bounds that meet one machine where many were meant.
    package mutating func liftForDevelopment() {
        // Backends are tried out there, under load as well; a 429 can be had from the fault mode.
        self.pushesPerDeviceMax = 0
        // Everybody there has the same address.
        self.transport.connectionsPerAddressMax = 0
        self.streamsPerCredentialMax = 0
        self.submissionsPerCredentialMax = 0
        self.progressPerCredentialMax = 0
    }
}

/// The bounds that are neither the transport's nor the engine's, by their names in the configuration.
package enum GatewayCountedLimit: String, CountedLimit {
    /// A loop stopped reading until the engine had answered.
    case requestsAtEngineMax
    /// A request, or a connection, was refused.
    case connectionsPerCredentialMax
    /// A worker's stream was refused.
    case streamsPerCredentialMax
    /// A submission of a background task, or the report of a finished session, was refused.
    case submissionsPerCredentialMax
    /// A report of progress was refused.
    case progressPerCredentialMax
    /// A stream of somebody who watches was refused.
    case liveStreamsMax
    /// A stream of somebody who follows what happens was refused.
    case eventStreamsMax
    /// Somebody who follows what happens was too slow for events, which were left out.
    case eventsHeldMax
    /// Events were dropped from the history before their time.
    case historyBytesMax
    /// Events were dropped from the history because their time was over.
    case historySeconds
}
