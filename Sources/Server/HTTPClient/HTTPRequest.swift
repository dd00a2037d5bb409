package import Wire

/// A request to send.
package struct HTTPRequest: Sendable {
    package var method: String
    /// The complete URL, `http://` or `https://`.
    package var url: String
    /// Field names and values, in order.
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]?
    /// The timeout of the whole exchange in milliseconds; nil for none.
    package var timeoutMilliseconds: Int?
    /// True if the body of the answer is delivered in pieces as it arrives (`HTTPEvent.body`) instead of collected.
    package var isStreaming: Bool
    /// The settings for this request; nil for the client's settings.
    package var settings: HTTPClientSettings?
    /// True if the request must use a new connection, because existing connections may be dead.
    package var isFresh = false
    /// The receiver of the answer's head and body, only for streaming requests. It gets the bytes without copies, and
    /// instead of events.
    package var sink: (any HTTPBodySink)?
    /// The file to send as the body, instead of `body`.
    package var file: HTTPFileBody?
    /// The cookies that the request sends and its answer may change; nil for a request without cookies.
    package var cookies: HTTPCookies?
    /// The timeout, in whole seconds, after which a request fails if it sends and receives less than one byte per
    /// second; nil for none.
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

    /// True if the URL's host is `localhost` or a loopback address.
    package var isForLoopback: Bool { HTTPURL(self.url)?.isLoopback ?? false }
}

/// The settings of a client's connections.
package struct HTTPClientSettings: Sendable {
    /// A PEM file of the authorities to trust instead of the system's.
    package var certificateAuthorityFile: String?
    /// A PEM file with the client's certificate chain.
    package var certificateFile: String?
    /// A PEM file with the client's private key.
    package var privateKeyFile: String?
    /// The UNIX socket to connect to, regardless of the URL's host.
    package var socketPath: String?
    /// True if `http://` uses HTTP/2 from the first byte (prior knowledge) instead of HTTP/1.1.
    package var cleartextHTTP2 = false
    /// The timeout for establishing a connection, in milliseconds.
    package var connectTimeoutMilliseconds = 10_000
    /// The longest collected body, in bytes.
    package var bodyBytesMax = 64 << 20
    /// The addresses to which the client may connect. Every address of a host name is checked. The actual address of a
    /// connection is checked again before each request.
    package var reach = AddressReach.anywhere
    /// True if requests use `proxy`, or else the proxies in the environment.
    package var usesProxies = true
    /// True if requests to this machine use a proxy, too.
    package var usesProxiesForLoopback = false
    /// The proxy to use instead of those in the environment.
    package var proxy: String?
    /// True if an answer without a length fails when its TLS connection ends without a close_notify alert, because an
    /// attacker may have truncated the answer.
    package var heedsTLSEnd = false
    /// The addresses to use instead of the resolver's answers, each as `HOST:PORT:ADDRESS`.
    package var resolutions: [String] = []
    /// The time, in milliseconds, after which a connection fails if its peer acknowledges neither data nor probes; nil
    /// for the system's default.
    package var peerSilenceMillisecondsMax: Int?

    package init() {}
}

/// A receiver of an answer's body as it arrives. Its functions are called on the client's thread while libcurl waits.
package protocol HTTPBodySink: AnyObject, Sendable {
    /// Receives the head of the answer.
    ///
    /// - Returns: false to end the exchange.
    func headReceived(_ response: HTTPResponse) -> Bool

    /// Receives the next bytes of the body, which are valid only during the call.
    ///
    /// - Returns: false to end the exchange.
    func bodyReceived(_ bytes: ByteView) -> Bool
}

/// A file to send as the body of a request. Reading a file may block, so the client does not read it itself.
package struct HTTPFileBody: Sendable {
    /// The number of bytes to send.
    package let byteCount: Int64
    /// Called on the client's thread with the offset of the bytes to send next. The request then waits until
    /// `HTTPClient.supply` is called.
    package let onNeed: @Sendable (Int64) -> Void
    /// Called on the client's thread with the number of bytes that libcurl has read so far.
    package let onProgress: @Sendable (Int64) -> Void

    package init(
        byteCount: Int64,
        onNeed: @escaping @Sendable (Int64) -> Void,
        onProgress: @escaping @Sendable (Int64) -> Void
    ) {
        self.byteCount = byteCount
        self.onNeed = onNeed
        self.onProgress = onProgress
    }
}

/// An event of a request since the last poll.
package enum HTTPEvent: Sendable {
    /// The status and headers of the answer to a streaming request.
    case head(HTTPRequestID, HTTPResponse)
    /// The next bytes of a streaming answer.
    case body(HTTPRequestID, [UInt8])
    /// The end of the exchange, after which no event follows. The response of a streaming request has no body here.
    case ended(HTTPRequestID, Result<HTTPResponse, HTTPClientError>)
}

/// The identifier of a request, unique within a client and never reused.
package struct HTTPRequestID: Hashable, Sendable {
    let number: UInt64
}
