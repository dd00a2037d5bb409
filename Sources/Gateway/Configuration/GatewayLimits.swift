import DeviceEngine
package import HTTPTransport

/// Every bound of the gateway that an operator can set, with its value.
package struct GatewayLimits: Sendable {
    /// The bounds of connections, streams and HTTP.
    package var transport = TransportLimits()
    /// The most device tokens kept, removed ones included.
    package var devicesMax = EngineConfiguration().devicesMax
    /// The most topics kept.
    package var topicsMax = EngineConfiguration().topicsMax

    package init() {}
}
