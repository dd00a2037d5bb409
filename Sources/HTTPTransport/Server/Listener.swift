/// One address the server listens on, and how it speaks there.
package struct Listener: Sendable {
    package let address: ListenAddress
    /// With TLS: HTTP/2 alone. Without: HTTP/2 by prior knowledge, and HTTP/1.1.
    package let tls: TLSContext?

    package init(address: ListenAddress, tls: TLSContext?) {
        self.address = address
        self.tls = tls
    }
}
