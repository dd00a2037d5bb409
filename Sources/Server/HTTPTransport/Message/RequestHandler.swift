/// Takes the requests of one event loop; every call comes on that loop's thread.
///
/// All but `turnEnded` are called while bytes are being read or written: they may answer any stream of the loop,
/// whose bytes leave at the end of the turn.
package protocol RequestHandler: AnyObject {
    /// A client has shown a certificate in a TLS handshake that is over now; called before the connection's first
    /// request. When it asks the loop for `goAway` of that connection, no request of it comes.
    func certificateShown(_ certificate: ClientCertificate, on connection: ConnectionID)

    /// A TLS handshake came to nothing, for a cause in the library's words.
    func handshakeFailed(_ cause: String)

    /// The most bytes the body may have; asked when the headers of a request that has a body have ended.
    func bodyBytesMax(for request: Request) -> Int

    /// The request has ended, or its body has passed the limit (`isBodyTooLarge`).
    func requestReceived(_ request: Request)

    /// An unanswered or streaming response has nobody to go to any more: the peer reset it, or the connection is gone.
    /// Not called after `finish`.
    func streamClosed(_ stream: StreamID)

    /// A connection that had carried at least one request, or shown a certificate, is gone; all its streams were closed
    /// before.
    func connectionClosed(_ connection: ConnectionID)

    /// The queue of a streaming response fell below half of its limit after having passed it.
    func streamDrained(_ stream: StreamID)

    /// Every ready socket of one turn of the loop was read, nothing is written yet.
    func turnEnded()

    /// `EventLoop.wake` was called.
    func woken()

    /// About once a second while the loop has connections.
    func secondPassed(_ monotonicMilliseconds: Int64)

    /// The loop ends, and with it every connection: what is asked of them leaves as far as their sockets take it.
    func loopEnds()

    /// `EventLoop.alarmAt` has come, which is `Int64.max` again.
    func alarmRang(_ monotonicMilliseconds: Int64)
}

extension RequestHandler {
    package func handshakeFailed(_: String) {}

    package func loopEnds() {}

    /// Servers that ask for no certificate hear of none.
    package func certificateShown(_: ClientCertificate, on _: ConnectionID) {}
}
