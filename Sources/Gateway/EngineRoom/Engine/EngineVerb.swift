package import Bytes
package import LaunchPolicy
package import WakeDispatch

/// What the engine does for a caller who waits for its answer.
package enum EngineVerb: Sendable {
    case subscribe(topic: [UInt8], SubscriptionRequest)
    case report(Named<WakeID>, FetchResult)
    /// More time for a wake, in milliseconds from now; nil for as long as a wake has at first.
    case extend(Named<WakeID>, milliseconds: Int64?)
    /// No more wakes for a stream, which ends after its last.
    case drainStream(StreamAddress)
    case register(DeviceToken, topic: [UInt8])
    case unregister(Named<DeviceToken>)
    case conditions(Named<DeviceToken>, ConditionsReport)
    case simulateLaunch(Named<DeviceToken>)
    case simulateExpiration(Named<DeviceToken>)
    case explain(Named<DeviceToken>)
    /// The last pushes to a device.
    case devicePushes(Named<DeviceToken>)
    /// What would have become of a device's pushes under another policy.
    case whatIf(Named<DeviceToken>, WhatIf)
    /// The way of a push, to one device if one is named.
    case push(APNsID, device: DeviceToken?)
    case statistics
    case topicStatistics(topic: [UInt8])
    case topics
    case readiness
    case metrics(GatewayFigures)
}
