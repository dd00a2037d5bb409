import DeviceEngine
package import HTTPTransport
import History

/// Every bound of the gateway that an operator can set, with its value.
package struct GatewayLimits: Sendable {
    /// The bounds of connections, streams and HTTP.
    package var transport = TransportLimits()
    /// The most device tokens kept, removed ones included.
    package var devicesMax = EngineConfiguration().devicesMax
    /// The most topics kept.
    package var topicsMax = EngineConfiguration().topicsMax
    /// The most pushes one device takes within `pushesPerDeviceSeconds`; 0 is no limit.
    package var pushesPerDeviceMax = PushRate().pushesMax
    package var pushesPerDeviceSeconds = PushRate().seconds

    /// The bytes that the history's file stays within.
    package var historyBytesMax = HistoryLimits().bytesMax
    /// How long the history keeps an event.
    package var historySeconds = Int(HistoryLimits().ageMillisecondsMax / 1000)

    package init() {}
}
