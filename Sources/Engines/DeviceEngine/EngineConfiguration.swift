package import LaunchPolicy

/// How an engine is set up.
package struct EngineConfiguration: Sendable {
    /// The policy of topics that have none of their own.
    package var policy = Parameters()
    /// The policy of topics by name.
    package var topicPolicies: [String: Parameters] = [:]
    /// Whether the first push registers an unknown token.
    package var openRegistration = false
    /// The most tokens kept, removed ones included; ten million take 3 GB idle, and 9 GB with a push
    /// waiting on each.
    package var devicesMax = 10_000_000
    /// The most tokens in one topic; all, as a gateway may serve one app alone.
    package var devicesPerTopicMax = 10_000_000
    /// The most topics kept; ten thousand, as a topic is an app.
    package var topicsMax = 10_000
    /// The most streams of workers that name one device; 0 is no limit.
    package var streamsPerDeviceMax = 64
    /// The most bytes of pushes that wait or are in flight.
    package var pendingBytesMax = Int.max
    /// The most bytes of one topic's pushes.
    package var pendingBytesPerTopicMax = Int.max
    /// How many pushes one device takes.
    package var pushRate = PushRate()

    package init() {}
}
