/// One request under way: what has come of its answer so far.
///
/// A class, because libcurl's callbacks find it by its address.
final class HTTPTransfer {
    let id: HTTPRequestID
    let isStreaming: Bool
    let bodyBytesMax: Int
    var response = HTTPResponse(status: 0)
    /// Bytes of a streaming answer that were not handed over yet.
    var unread: [UInt8] = []
    var isHeadComplete = false
    var isHeadReported = false
    var isTooLarge = false

    /// A head holds at most this many fields; libcurl bounds the length of each.
    static let headersMax = 256

    init(id: HTTPRequestID, isStreaming: Bool, bodyBytesMax: Int) {
        self.id = id
        self.isStreaming = isStreaming
        self.bodyBytesMax = bodyBytesMax
    }

    /// A whole line of the head has come, its line ending included.
    func headerReceived(_ line: String) {
        let line = line.hasSuffix("\r\n") ? line.dropLast() : line.hasSuffix("\n") ? line.dropLast() : Substring(line)
        if line.hasPrefix("HTTP/") {
            // A new head: the one before was informational (100, 103).
            let status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) }
            self.response = HTTPResponse(status: status ?? 0)
            self.isHeadComplete = false
        } else if line.isEmpty {
            self.isHeadComplete = self.response.status >= 200
        } else if let colon = line.dropFirst().firstIndex(of: ":"), self.response.headers.count < Self.headersMax {
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            self.response.headers.append((line[..<colon].lowercased(), String(value)))
        }
    }

    /// Bytes of the body have come.
    ///
    /// - Returns: false when the body is longer than it may be, to end the transfer.
    func bodyReceived(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if self.isStreaming {
            unsafe self.unread.append(contentsOf: bytes)
            return true
        }
        guard bytes.count <= self.bodyBytesMax - self.response.body.count else {
            self.isTooLarge = true
            return false
        }
        unsafe self.response.body.append(contentsOf: bytes)
        return true
    }

    /// What came since the last call, for whoever streams it.
    func takeEvents() -> [HTTPEvent] {
        var events: [HTTPEvent] = []
        if self.isStreaming, self.isHeadComplete, !self.isHeadReported {
            self.isHeadReported = true
            events.append(.head(self.id, self.response))
        }
        if !self.unread.isEmpty {
            events.append(.body(self.id, self.unread))
            self.unread.removeAll()
        }
        return events
    }
}
