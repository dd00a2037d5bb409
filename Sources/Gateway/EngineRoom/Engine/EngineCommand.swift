package import Access
package import Bytes
package import DeviceEngine
package import LaunchPolicy
package import WakeDispatch

/// What a loop asks of the engine besides accepting pushes. `reply` names the request that waits for the answer.
package enum EngineCommand: Sendable {
    /// A push was refused before it reached the engine.
    case rejected(reason: Int, topic: [UInt8])
    case subscribe(reply: StreamAddress, topic: [UInt8], SubscriptionRequest)
    case streamEnded(StreamAddress)
    case streamPaused(StreamAddress, Bool)
    /// A stream may hold more or fewer wakes from now on.
    case slotsChanged(StreamAddress, Int)
    /// A stream goes on without a wake it held, whose attempt counts unless its worker never got it.
    case lost(StreamAddress, WakeID, takingBackAttempt: Bool)
    /// How a topic's webhook is; nil when it has none any more.
    case webhookChanged(topic: String, WebhookStatus?)
    case report(reply: StreamAddress, WakeID, FetchResult)
    /// More time for a wake, in milliseconds from now; nil for as long as a wake has at first.
    case extend(reply: StreamAddress, WakeID, milliseconds: Int64?)
    /// No more wakes for a stream, which ends after its last.
    case drainStream(reply: StreamAddress, StreamAddress)
    case register(reply: StreamAddress, DeviceToken, topic: [UInt8])
    case unregister(reply: StreamAddress, DeviceToken)
    case conditions(reply: StreamAddress, DeviceToken, ConditionsReport)
    case simulateLaunch(reply: StreamAddress, DeviceToken)
    case simulateExpiration(reply: StreamAddress, DeviceToken)
    case explain(reply: StreamAddress, DeviceToken)
    /// The last pushes to a device.
    case devicePushes(reply: StreamAddress, DeviceToken)
    /// What would have become of a device's pushes under another policy.
    case whatIf(reply: StreamAddress, DeviceToken, WhatIf)
    /// The way of a push, to one device if one is named.
    case push(reply: StreamAddress, APNsID, device: DeviceToken?)
    case statistics(reply: StreamAddress)
    case topicStatistics(reply: StreamAddress, topic: [UInt8])
    case topics(reply: StreamAddress)
    case readiness(reply: StreamAddress)
    case metrics(reply: StreamAddress, GatewayFigures)
    /// A command of a caller who reaches these topics alone.
    indirect case within(TopicScope, EngineCommand)
    /// Another configuration is in force from here on.
    indirect case configure(EngineSettings)
    /// The first token was issued: workers are asked who they are.
    case workersAsked
    /// Launch nothing new from now on.
    case drain
}
