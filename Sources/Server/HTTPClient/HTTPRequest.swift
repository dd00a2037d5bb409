/// A request to send.
package struct HTTPRequest: Sendable {
    package var method: String
    /// The whole URL, `http://` or `https://`.
    package var url: String
    /// Field names and values, in order.
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]?
    /// How long the whole exchange may take, in milliseconds; nil for as long as it takes.
    package var timeoutMilliseconds: Int?
    /// Whether the body of the answer is handed over as it comes (`HTTPEvent.body`) instead of collected.
    package var isStreaming: Bool
    /// How to connect for this request; nil as the client does.
    package var settings: HTTPClientSettings?
    /// Whether it goes over a new connection: those there are may be dead.
    package var isFresh = false
    /// Takes the body of the answer as it comes, without a copy and without events; of streaming requests alone.
    package var sink: (any HTTPBodySink)?
    /// The body, in the place of `body`.
    package var file: HTTPFileBody?
    /// The cookies that the request sends, and to which its answer adds; nil for a request without cookies.
    package var cookies: HTTPCookies?
    /// How long no byte may come or leave, in whole seconds; nil for as long as it takes.
    package var silenceSecondsMax: Int?

    package init(
        _ method: String,
        _ url: String,
        headers: [(name: String, value: String)] = [],
        body: [UInt8]? = nil,
        timeoutMilliseconds: Int? = 30_000,
        isStreaming: Bool = false
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.timeoutMilliseconds = timeoutMilliseconds
        self.isStreaming = isStreaming
    }
}

extension HTTPRequest {
    /// Whether it is for this machine itself, as its URL says.
    var isForLoopback: Bool {
        let host = self.url.split(separator: "/", maxSplits: 2).dropFirst().first ?? ""
        return ["localhost", "127.", "[::1]"].contains { host.hasPrefix($0) }
    }
}

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
    /// Whether they are used for this machine's own addresses, too.
    package var usesProxiesForLoopback = false
    /// The proxy to use in the place of those that the environment names.
    package var proxy: String?
    /// Whether a connection over TLS that ends without its peer's word, as anybody on the way can have it, is a failure
    /// also where an answer without a length ends with it.
    package var heedsTLSEnd = false
    /// What to take for the answers of the resolver, each `HOST:PORT:ADDRESS`.
    package var resolutions: [String] = []
    /// How long a peer may leave what it was sent unacknowledged, and be silent to probes, before its connection is
    /// given up, in milliseconds; nil for as long as the system likes.
    package var peerSilenceMillisecondsMax: Int?

    package init() {}
}
