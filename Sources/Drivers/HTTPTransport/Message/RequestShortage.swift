/// What a request had no room in before all of it had arrived.
package enum RequestShortage: UInt8, Sendable {
    /// It had room.
    case none
    /// `requestBytesPerConnectionMax`: its own client has begun too many.
    case connection
    /// `requestBytesMax`: all clients together have.
    case server
}
