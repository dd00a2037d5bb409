/// Why a request of HTTP/1 is answered without the handler having heard of it; the connection ends with the answer.
enum HTTP1Fault: Error {
    /// What RFC 9112 does not allow, in words for who sent it.
    case malformed(StaticString)
    case targetTooLong
    /// The request did not arrive in time.
    case timeout
    case headTooLarge
    case expectation
    case coding
    case version
    /// There is no room for it in what all requests may take.
    case noRoom

    var status: Int {
        switch self {
        case .malformed: 400
        case .timeout: 408
        case .targetTooLong: 414
        case .expectation: 417
        case .headTooLarge: 431
        case .coding: 501
        case .noRoom: 503
        case .version: 505
        }
    }

    /// What to do differently.
    var message: StaticString {
        switch self {
        case .malformed(let what): what
        case .timeout: "The request took too long to arrive."
        case .targetTooLong: "The request line is too long."
        case .expectation: "No expectation is met but 100-continue."
        case .headTooLarge: "The header fields are too large."
        case .coding: "No transfer coding is known but chunked."
        case .noRoom: "Too many requests are arriving; try again."
        case .version: "Speak HTTP/1.1, or HTTP/2 from the first byte."
        }
    }
}
