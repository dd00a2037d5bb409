/// One address the server listens on, and how it speaks there.
package struct Listener: Sendable {
    package let address: ListenAddress
    /// With TLS: HTTP/2 alone. Without: HTTP/2 by prior knowledge, and HTTP/1.1.
    package let tls: TLSContext?
    /// How many streams an HTTP/2 connection may have open until the handler sets another number; nil for
    /// `streamsPerConnectionMax`. A client that showed a certificate may always have those.
    package let streamsAtFirst: Int?

    package init(address: ListenAddress, tls: TLSContext?, streamsAtFirst: Int? = nil) {
        self.address = address
        self.tls = tls
        self.streamsAtFirst = streamsAtFirst
    }
}
