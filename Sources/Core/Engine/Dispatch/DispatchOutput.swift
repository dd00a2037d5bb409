package import Policy
package import Wire

/// What the dispatcher tells workers. Whoever takes it keeps it back until the step is durable.
package protocol DispatchOutput: AnyObject {
    /// A wake for the stream; its content is valid during the call.
    func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress)

    /// A wake the stream holds has expired: its worker should stop.
    func expire(_ wake: WakeID, on stream: StreamAddress, reason: ExpirationReason)

    /// The stream no longer holds a wake it held, however that ended; not said of a stream that ended itself. Of a wake
    /// that has expired `expire` was said before.
    func released(_ wake: WakeID, on stream: StreamAddress)

    /// The stream was asked to end, and holds no wake any more: it is forgotten, and may be ended.
    func drained(_ stream: StreamAddress)

    /// Conditions of a device have changed, of which the stream hears: all of them as they are now. What changed
    /// several times before it could be told is told once.
    func conditionsChanged(_ token: DeviceToken, _ conditions: Conditions, on stream: StreamAddress)
}

/// Where a worker's stream, or a request that waits for its answer, is found.
///
/// The dispatcher carries it and never looks inside.
package enum StreamAddress: Hashable, BitwiseCopyable, Sendable {
    /// A stream of a connection.
    case stream(LoopStream)
    /// The stream of a push whose answer fault rules get before it is sent.
    case faulted(LoopStream)
    /// The wakes of the webhook with this number.
    case webhook(UInt32)
    /// The results that the webhook with this number reports: nobody waits for their answers.
    case webhookReport(UInt32)
}

/// A stream of a connection: which loop has the connection, and which of its streams it is.
package struct LoopStream: Hashable, BitwiseCopyable, Sendable {
    package let connectionIndex: UInt32
    package let connectionGeneration: UInt32
    package let number: Int32
    package let loop: UInt16

    package init(loop: UInt16, connectionIndex: UInt32, connectionGeneration: UInt32, number: Int32) {
        self.connectionIndex = connectionIndex
        self.connectionGeneration = connectionGeneration
        self.number = number
        self.loop = loop
    }
}
