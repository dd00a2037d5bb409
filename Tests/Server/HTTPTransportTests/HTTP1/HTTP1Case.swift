import Testing

/// What a client sends over one connection of HTTP/1, and what comes of it.
struct HTTP1Case: Sendable, CustomTestStringConvertible {
    /// What is right or wrong with it.
    let rule: String
    let sent: [UInt8]
    /// The statuses of the answers, in their order.
    let statuses: [Int]
    /// Whether the server ends the connection by itself; otherwise it answers one more request on it.
    let isEnded: Bool
    /// What the handler was asked for, each as `METHOD PATH HOST BODY`; nil where that goes without saying.
    let requests: [String]?

    var testDescription: String { self.rule }

    /// Requests that are answered 200 one after the other, and the connection stays.
    static func good(_ rule: String, _ sent: String, _ requests: String...) -> HTTP1Case {
        HTTP1Case(
            rule: rule,
            sent: [UInt8](sent.utf8),
            statuses: requests.map { _ in 200 },
            isEnded: false,
            requests: requests
        )
    }

    /// A case whose requests are answered, and then the connection ends.
    static func last(_ rule: String, _ sent: String, _ requests: String...) -> HTTP1Case {
        HTTP1Case(
            rule: rule,
            sent: [UInt8](sent.utf8),
            statuses: requests.map { _ in 200 },
            isEnded: true,
            requests: requests
        )
    }

    /// Bytes whose first request is refused; nothing of what follows is taken for another.
    static func bad(_ rule: String, _ sent: String, _ status: Int = 400) -> HTTP1Case {
        .bad(rule, [UInt8](sent.utf8), status)
    }

    static func bad(_ rule: String, _ sent: [UInt8], _ status: Int = 400) -> HTTP1Case {
        HTTP1Case(rule: rule, sent: sent, statuses: [status], isEnded: true, requests: [])
    }
}

/// What is sent behind a request that is refused: whoever took it for a request would answer it.
let smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
