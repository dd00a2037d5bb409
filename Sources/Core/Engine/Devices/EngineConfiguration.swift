package import Policy

/// How an engine is set up.
package struct EngineConfiguration: Sendable {
    /// The policy of topics that have none of their own.
    package var policy = Parameters()
    /// The policy of topics by name.
    package var topicPolicies: [String: Parameters] = [:]
    /// Which identifiers of background tasks workers may submit.
    package var permittedTasks = PermittedTasks.none
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
    /// The most requests of background tasks and sessions that wait or run; two for each of `devicesMax`.
    package var taskRequestsMax = 20_000_000
    /// The most of them in one topic.
    package var taskRequestsPerTopicMax = 20_000_000
    /// The most bytes of what those are named and entitled, and of the ids of session events.
    package var taskBytesMax = Int.max
    /// The most of these bytes in one topic.
    package var taskBytesPerTopicMax = Int.max
    /// How many pushes one device takes.
    package var pushRate = PushRate()

    package init() {}

    /// The policy of the topic of this name.
    func parameters(topic name: String) -> Parameters { self.topicPolicies[name] ?? self.policy }
}

/// The bounds that the engine and its dispatcher meet, by their names in the configuration.
package enum EngineLimit: String, Sendable {
    /// A device was not registered.
    case devicesMax
    /// A device was not registered.
    case devicesPerTopicMax
    /// A device or a stream was not taken, whose topic is new.
    case topicsMax
    /// A push was refused.
    case pushesPerDeviceMax
    /// A push was refused.
    case pendingBytesMax
    /// A push was refused.
    case pendingTopicPercentMax
    /// A stream was not taken, since as many name a device that it names.
    case streamsPerDeviceMax
    /// A stream got no more wakes until it answered some.
    case wakeBytesPerStreamMax
}

extension EngineLimit: CountedCase {
    package var place: Int {
        switch self {
        case .devicesMax: 0
        case .devicesPerTopicMax: 1
        case .topicsMax: 2
        case .pushesPerDeviceMax: 3
        case .pendingBytesMax: 4
        case .pendingTopicPercentMax: 5
        case .wakeBytesPerStreamMax: 6
        case .streamsPerDeviceMax: 7
        }
    }
}

/// The bounds that background tasks meet in the engine, by their names in the configuration.
package enum TaskLimit: String, Sendable {
    /// A submission was refused.
    case taskRequestsMax
    /// A submission was refused.
    case taskBytesMax
    /// A submission was refused.
    case taskTopicPercentMax
}

extension TaskLimit: CountedCase {
    package var place: Int {
        switch self {
        case .taskRequestsMax: 0
        case .taskBytesMax: 1
        case .taskTopicPercentMax: 2
        }
    }
}

extension Refusal {
    /// The bound that was met; nil when another reason applies.
    package var limit: EngineLimit? {
        switch self {
        case .unknown, .unregistered, .otherTopic: nil
        case .tooManyDevices: .devicesMax
        case .tooManyDevicesOfTopic: .devicesPerTopicMax
        case .tooManyTopics: .topicsMax
        case .tooMany: .pushesPerDeviceMax
        case .noMemory: .pendingBytesMax
        case .noMemoryForTopic: .pendingTopicPercentMax
        }
    }
}
