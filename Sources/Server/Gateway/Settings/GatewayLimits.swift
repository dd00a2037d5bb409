import Engine
package import HTTPTransport
import Storage

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
