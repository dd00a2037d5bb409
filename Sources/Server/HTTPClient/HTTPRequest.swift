package import Synchronization
package import Wire

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

/// Takes the body of an answer as it comes, on the thread of the client and while libcurl waits.
package protocol HTTPBodySink: AnyObject, Sendable {
    /// The head of the answer has come.
    ///
    /// - Returns: false to end the exchange.
    func headReceived(_ response: HTTPResponse) -> Bool

    /// The next bytes of the body have come; they are valid during the call.
    ///
    /// - Returns: false to end the exchange.
    func bodyReceived(_ bytes: ByteView) -> Bool
}

/// A file that is the body of a request. Whoever gives it keeps it open until the request has ended.
package final class HTTPFileBody: Sendable {
    package let descriptor: Int32
    /// How many bytes are sent; a file that has fewer ends the exchange.
    package let byteCount: Int64
    /// Called on the client's thread with how many bytes libcurl has taken of it.
    package let onProgress: @Sendable (Int64) -> Void
    /// Whether the file had fewer bytes than were announced, or could not be read.
    package let isCut = Atomic<Bool>(false)

    package init(descriptor: Int32, byteCount: Int64, onProgress: @escaping @Sendable (Int64) -> Void) {
        self.descriptor = descriptor
        self.byteCount = byteCount
        self.onProgress = onProgress
    }
}

/// What became of a request since the last poll.
package enum HTTPEvent: Sendable {
    /// The answer to a streaming request has begun: its status and headers.
    case head(HTTPRequestID, HTTPResponse)
    /// The next bytes of a streaming answer.
    case body(HTTPRequestID, [UInt8])
    /// The exchange has ended; nothing follows. A streaming answer has no body here.
    case ended(HTTPRequestID, Result<HTTPResponse, HTTPClientError>)
}

/// Names a request of one client; never used again.
package struct HTTPRequestID: Hashable, Sendable {
    let number: UInt64
}

/// A file descriptor that `HTTPClient.poll` waits for besides its own sockets.
package struct PollDescriptor: Hashable, Sendable {
    package enum Interest: Sendable {
        case readable, writable
    }

    package var descriptor: Int32
    package var interest: Interest

    package init(_ descriptor: Int32, _ interest: Interest) {
        self.descriptor = descriptor
        self.interest = interest
    }
}

/// Ends the wait of an `HTTPClient` in `poll`, from any thread; the next wait, when it does not wait now.
package struct HTTPWaker: Sendable {
    private let multi: MultiHandle

    init(_ multi: MultiHandle) {
        self.multi = multi
    }

    package func wake() {
        self.multi.wake()
    }
}
