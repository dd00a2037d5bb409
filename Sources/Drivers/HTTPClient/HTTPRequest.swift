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
