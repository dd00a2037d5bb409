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
