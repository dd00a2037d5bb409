/// The answer to a request.
package struct HTTPResponse: Sendable {
    /// The most bytes of the header fields of an answer, with those of the informational answers before it. libcurl
    /// takes few more, and says of longer ones what nobody would understand.
    package static let headBytesMax = 98_304

    /// The status code, 100...999.
    package var status: Int
    /// Field names in lower case and values, in order.
    package var headers: [(name: String, value: String)]
    /// The body; empty for requests whose body is streamed.
    package var body: [UInt8]
    /// After how many seconds the server wants to be asked again (`retry-after`); nil when it does not say.
    package var retryAfterSeconds: Int?

    package init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The first value of the field `name`, which is in lower case.
    package func header(_ name: String) -> String? {
        self.headers.first { $0.name == name }?.value
    }

    /// Whether its head says where it ends; over HTTP/1.1 another one ends with its connection.
    var hasEndOfItsOwn: Bool {
        self.header("content-length") != nil || self.header("transfer-encoding") != nil || self.status == 204
            || self.status == 304
    }

    package var isSuccess: Bool { (200..<300).contains(self.status) }

    /// The body as text; ill-formed UTF-8 is replaced by U+FFFD.
    package var text: String { String(decoding: self.body, as: UTF8.self) }
}
