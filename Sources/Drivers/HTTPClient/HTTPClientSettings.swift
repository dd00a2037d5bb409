/// How a client connects.
package struct HTTPClientSettings: Sendable {
    /// PEM file of the authorities to trust instead of the system's.
    package var certificateAuthorityFile: String?
    /// PEM file of the client's certificate chain.
    package var certificateFile: String?
    /// PEM file of the client's private key.
    package var privateKeyFile: String?
    /// The UNIX socket to connect to, whatever the URL's host is.
    package var socketPath: String?
    /// Whether `http://` speaks HTTP/2 from the first byte (prior knowledge) instead of HTTP/1.1.
    package var cleartextHTTP2 = false
    /// How long establishing a connection may take, in milliseconds.
    package var connectTimeoutMilliseconds = 10_000
    /// The longest collected body, in bytes.
    package var bodyBytesMax = 64 << 20
    /// Which addresses it connects to; a name is judged by every address it stands for, and each connection again by
    /// the one it really has before a request is sent on it.
    package var reach = AddressReach.anywhere
    /// Whether the proxies that the environment names are used.
    package var usesProxies = true
    /// What to take for the answers of the resolver, each `HOST:PORT:ADDRESS`.
    package var resolutions: [String] = []
    /// How long a peer may leave what it was sent unacknowledged, and be silent to probes, before its connection is
    /// given up, in milliseconds; nil for as long as the system likes.
    package var peerSilenceMillisecondsMax: Int?

    package init() {}
}
