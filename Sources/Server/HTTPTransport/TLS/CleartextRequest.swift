internal import Wire

/// A request of HTTP in cleartext that reached a listener of TLS.
enum CleartextRequest {
    /// The methods of HTTP/1.1 with the space behind them, and the beginning of HTTP/2.
    private static let beginnings: [StaticString] = [
        "GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "PATCH ", "OPTIONS ", "PRI * HTTP/2.0",
    ]

    /// What it is answered: that this is a listener of TLS.
    static let answer: StaticString = """
        HTTP/1.1 400 Bad Request\r
        content-type: application/json\r
        content-length: 97\r
        connection: close\r
        \r
        {"reason":"TLSRequired","message":"This listener speaks TLS; write https:// instead of http://."}
        """

    /// Whether the first bytes of a connection begin such a request.
    ///
    /// An empty line before a request is skipped once, as RFC 9112 section 2.2 requires.
    static func begins(_ bytes: ByteView) -> Bool {
        let request = bytes.starts(with: "\r\n") ? bytes.dropFirst(2) : bytes
        return self.beginnings.contains { request.starts(with: $0) }
    }
}
