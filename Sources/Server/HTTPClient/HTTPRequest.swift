package import Synchronization
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
    /// True if the body of the answer is delivered as it arrives (`HTTPEvent.body`) instead of collected.
    package var isStreaming: Bool
    /// The settings for this request; nil for those of the client.
    package var settings: HTTPClientSettings?
    /// True to use a new connection, because existing ones may be dead.
    package var isFresh = false
    /// Receives the body of the answer as it arrives, without copies and events; only for streaming requests.
    package var sink: (any HTTPBodySink)?
    /// The body as a file, instead of `body`.
    package var file: HTTPFileBody?
    /// The cookies that the request sends, and to which its answer adds; nil for a request without cookies.
    package var cookies: HTTPCookies?
    /// The longest time without a sent or received byte, in whole seconds; nil for no limit.
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
    /// True if the URL's host is this machine.
    var isForLoopback: Bool {
        let host = self.url.split(separator: "/", maxSplits: 2).dropFirst().first ?? ""
        return ["localhost", "127.", "[::1]"].contains { host.hasPrefix($0) }
    }
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
    /// The addresses it may connect to. Every address of a host name is checked, and the actual address of each
    /// connection again before a request is sent on it.
    package var reach = AddressReach.anywhere
    /// True if the proxies in the environment are used.
    package var usesProxies = true
    /// True if they are also used for this machine's own addresses.
    package var usesProxiesForLoopback = false
    /// The proxy to use instead of those in the environment.
    package var proxy: String?
    /// True if a TLS connection that ends without its closing alert, which an attacker can cause, counts as a failure
    /// even for an answer without a length.
    package var heedsTLSEnd = false
    /// Entries that replace answers of the resolver, each `HOST:PORT:ADDRESS`.
    package var resolutions: [String] = []
    /// The time after which a connection fails whose peer acknowledges neither data nor probes, in milliseconds; nil
    /// for the system's default.
    package var peerSilenceMillisecondsMax: Int?

    package init() {}
}

/// Receives the body of an answer as it arrives, on the client's thread and while libcurl waits.
package protocol HTTPBodySink: AnyObject, Sendable {
    /// Receives the head of the answer.
    ///
    /// - Returns: false to end the exchange.
    func headReceived(_ response: HTTPResponse) -> Bool

    /// Receives the next bytes of the body; they are valid during the call.
    ///
    /// - Returns: false to end the exchange.
    func bodyReceived(_ bytes: ByteView) -> Bool
}

/// A file that is the body of a request. The caller keeps it open until the request has ended.
package final class HTTPFileBody: Sendable {
    package let descriptor: Int32
    /// The number of bytes to send; a shorter file ends the exchange.
    package let byteCount: Int64
    /// Called on the client's thread with the number of bytes that libcurl has read.
    package let onProgress: @Sendable (Int64) -> Void
    /// True if the file was shorter than announced or could not be read.
    package let isCut = Atomic<Bool>(false)

    package init(descriptor: Int32, byteCount: Int64, onProgress: @escaping @Sendable (Int64) -> Void) {
        self.descriptor = descriptor
        self.byteCount = byteCount
        self.onProgress = onProgress
    }
}

/// An event of a request since the last poll.
package enum HTTPEvent: Sendable {
    /// The answer to a streaming request has begun: its status and headers.
    case head(HTTPRequestID, HTTPResponse)
    /// The next bytes of a streaming answer.
    case body(HTTPRequestID, [UInt8])
    /// The exchange has ended; nothing follows. A streaming answer has no body here.
    case ended(HTTPRequestID, Result<HTTPResponse, HTTPClientError>)
}

/// Identifies a request of one client; never reused.
package struct HTTPRequestID: Hashable, Sendable {
    let number: UInt64
}

/// A file descriptor that `HTTPClient.poll` waits for in addition to its sockets.
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

/// Ends the current or next wait of an `HTTPClient` in `poll`, from any thread.
package struct HTTPWaker: Sendable {
    private let multi: MultiHandle

    init(_ multi: MultiHandle) {
        self.multi = multi
    }

    package func wake() {
        self.multi.wake()
    }
}
