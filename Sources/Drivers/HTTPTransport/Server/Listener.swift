/// One address the server listens on, and how it speaks there.
package struct Listener: Sendable {
    package let address: ListenAddress
    /// With TLS: HTTP/2 alone. Without: HTTP/2 by prior knowledge, and HTTP/1.1.
    package let tls: TLSContext?
    /// How many streams an HTTP/2 connection may have open until the handler sets another number; nil for
    /// `streamsPerConnectionMax`. A client that showed a certificate may always have those.
    package let streamsAtFirst: Int?
    /// How many connections it may take beyond `connectionsMax`: whoever looks after the server gets in when nobody
    /// else does.
    package let connectionsReserved: Int
    /// The listening socket, when somebody else has opened it; it is the server's to close, even when that fails to
    /// start. Nil to open one.
    package let descriptor: Int32?

    package init(
        address: ListenAddress,
        tls: TLSContext?,
        streamsAtFirst: Int? = nil,
        connectionsReserved: Int = 0,
        descriptor: Int32? = nil
    ) {
        self.address = address
        self.tls = tls
        self.streamsAtFirst = streamsAtFirst
        self.connectionsReserved = connectionsReserved
        self.descriptor = descriptor
    }
}
