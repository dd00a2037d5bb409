internal import Wire

/// The properties of a request that follow from its head (RFC 9112 §6 and §9). The fields are in the stream's state.
struct HTTP1Head {
    enum Body: Equatable {
        case none
        case length(UInt64)
        case chunked
    }

    private(set) var body = Body.none
    /// True for HTTP/1.0. Such clients do not understand chunks and do not reuse the connection.
    private(set) var isOld = false
    /// True if the client sends no more requests on the connection.
    private(set) var isLast = false
    /// True if the client waits for `100 Continue` before it sends the body.
    var isAwaitingContinue = false
    private(set) var isHEAD = false

    /// Parses a head, and stores its fields in the state of its stream.
    ///
    /// - `bytes`: a head that `HeadScanner` found.
    /// - `headerListBytesMax`: the maximum size of the fields, as HTTP/2 counts it.
    init(
        _ bytes: ByteView,
        into slot: StreamSlot,
        headerListBytesMax: Int
    ) throws(HTTP1Fault) {
        var seen = Seen()
        var line: RequestLine?
        try bytes.forEachLine { text throws(HTTP1Fault) in
            guard line != nil else {
                let first = try RequestLine(text)
                line = first
                slot.state.headerListBytes = first.method.count + first.path.count + 2 * 32
                guard slot.state.headerListBytes <= headerListBytesMax else { throw .targetTooLong }
                return
            }
            let (name, value) = try text.field()
            let count = slot.state.headerListBytes + name.count + value.count + 32
            guard count <= headerListBytesMax else { throw .headTooLarge }
            slot.state.appendField(nameInAnyCase: name, value: value)
            try seen.take(name, value)
        }
        guard let line else { throw .malformed("A request begins with its request line.") }
        self.isOld = line.isOld
        self.isHEAD = line.method == "HEAD"
        guard seen.hasHost || line.isOld else { throw .malformed("A request of HTTP/1.1 names its host.") }
        slot.state.method = slot.state.append(name: ByteView(), value: line.method)
        // A URL without a path means "/".
        let hasPath = !line.path.isEmpty && !line.path.starts(with: "?")
        slot.state.path = slot.state.append(name: ByteView(), value: hasPath ? ByteView() : ByteView("/"))
        slot.state.received.append(line.path)
        slot.state.path.valueCount += UInt32(line.path.count)
        if let authority = line.authority {
            slot.state.authority = slot.state.append(name: ByteView(":authority"), value: authority)
        }
        self.body = try seen.body(isOld: line.isOld)
        self.isLast = seen.isLast || line.isOld
        self.isAwaitingContinue = seen.isAwaitingContinue && !line.isOld
    }
}

/// The fields that determine the framing of the message, collected during parsing.
private struct Seen {
    private(set) var hasHost = false
    private(set) var isLast = false
    private(set) var isAwaitingContinue = false
    private var length: UInt64?
    private var isChunked = false

    mutating func take(_ name: ByteView, _ value: ByteView) throws(HTTP1Fault) {
        switch name.count {
        case 4 where name.equalsIgnoringCase("host"): try self.takeHost(value)
        case 6 where name.equalsIgnoringCase("expect"):
            guard value.equalsIgnoringCase("100-continue") else { throw .expectation }
            self.isAwaitingContinue = true
        case 10 where name.equalsIgnoringCase("connection"):
            value.forEachElement { if $0.equalsIgnoringCase("close") { self.isLast = true } }
        case 14 where name.equalsIgnoringCase("content-length"): try self.takeLength(value)
        case 17 where name.equalsIgnoringCase("transfer-encoding"): try self.takeCoding(value)
        default: ()
        }
    }

    private mutating func takeHost(_ value: ByteView) throws(HTTP1Fault) {
        guard !self.hasHost else { throw .malformed("There is more than one Host.") }
        guard value.isEmpty || Authority(value) != nil else { throw .malformed("Host is not a host and port.") }
        self.hasHost = true
    }

    private mutating func takeLength(_ value: ByteView) throws(HTTP1Fault) {
        guard self.length == nil else { throw .malformed("There is more than one Content-Length.") }
        guard let length = value.decimal else { throw .malformed("Content-Length is not a number.") }
        self.length = length
    }

    private mutating func takeCoding(_ value: ByteView) throws(HTTP1Fault) {
        guard !self.isChunked else { throw .malformed("There is more than one Transfer-Encoding.") }
        self.isChunked = true
        guard !value.equalsIgnoringCase("chunked") else { return }
        var (isWord, chunkedAt, count) = (!value.isEmpty, 0, 0)
        value.forEachElement { coding in
            count += 1
            if !coding.isToken { isWord = false }
            if coding.equalsIgnoringCase("chunked") { chunkedAt = chunkedAt == 0 ? count : -1 }
        }
        // The end of the body is unknown unless `chunked` occurs once and is the last coding.
        guard isWord, chunkedAt == 0 || chunkedAt == count else {
            throw .malformed("Transfer-Encoding is not a list of codings that ends with chunked.")
        }
        throw .coding
    }

    /// Returns the framing of the body.
    ///
    /// - Throws: `HTTP1Fault` if two fields determine the end of the body, because they may disagree.
    func body(isOld: Bool) throws(HTTP1Fault) -> HTTP1Head.Body {
        if self.isChunked {
            guard self.length == nil else {
                throw .malformed("Content-Length excludes Transfer-Encoding.")
            }
            guard !isOld else { throw .malformed("HTTP/1.0 has no Transfer-Encoding.") }
            return .chunked
        }
        guard let length, length > 0 else { return .none }
        return .length(length)
    }
}

extension ByteView {
    /// Parses a line of a head as a field (RFC 9112 §5), and removes blanks around the value. Blanks around the name
    /// are errors.
    func field() throws(HTTP1Fault) -> (name: ByteView, value: ByteView) {
        guard let colon = self.firstIndex(of: UInt8(ascii: ":")), self[0..<colon].isToken else {
            throw .malformed("A field is a name, a colon right behind it, and a value on the same line.")
        }
        return (self[0..<colon], self.dropFirst(colon + 1).trimmed)
    }

    /// The bytes without blanks at both ends.
    fileprivate var trimmed: ByteView {
        var (start, end) = (0, self.count)
        while start < end, self[start].isBlank { start += 1 }
        while end > start, self[end - 1].isBlank { end -= 1 }
        return self[start..<end]
    }

    /// Calls `body` with each element of a comma-separated list, without the blanks around it.
    fileprivate func forEachElement(_ body: (ByteView) -> Void) {
        var rest = self
        while let comma = rest.firstIndex(of: UInt8(ascii: ",")) {
            body(rest[0..<comma].trimmed)
            rest = rest.dropFirst(comma + 1)
        }
        body(rest.trimmed)
    }
}

/// The parts of the first line of a request (RFC 9112 §3). They are views of the line's bytes.
struct RequestLine {
    let method: ByteView
    /// The requested path and query, or `*`, or the host and port of CONNECT. Empty for a URL without a path, which
    /// means `/`.
    let path: ByteView
    /// The host in the target, which only requests to proxies have; nil otherwise.
    let authority: ByteView?
    /// True for HTTP/1.0.
    let isOld: Bool

    /// - Parameter line: the line without its line end and without control characters.
    init(_ line: ByteView) throws(HTTP1Fault) {
        let space = UInt8(ascii: " ")
        guard let methodEnd = line.firstIndex(of: space), line[0..<methodEnd].isToken else {
            throw .malformed("A request begins with a method and one space.")
        }
        self.method = line[0..<methodEnd]
        let rest = line.dropFirst(methodEnd + 1)
        guard let targetEnd = rest.firstIndex(of: space) else {
            throw .malformed("A request line has a method, a target and a version.")
        }
        self.isOld = try Self.isOld(version: rest.dropFirst(targetEnd + 1))
        (self.authority, self.path) = try Self.parts(ofTarget: rest[0..<targetEnd], method: self.method)
    }

    private static func isOld(version: ByteView) throws(HTTP1Fault) -> Bool {
        guard version.count == 8, version.starts(with: "HTTP/"), version[5] &- 0x30 <= 9,
            version[6] == UInt8(ascii: "."), version[7] &- 0x30 <= 9
        else { throw .malformed("A request line ends with HTTP/1.1, one space before it and nothing behind.") }
        guard version[5] == UInt8(ascii: "1") else { throw .version }
        return version[7] == UInt8(ascii: "0")
    }

    /// Splits a target by its form (RFC 9112 §3.2).
    private static func parts(
        ofTarget target: ByteView,
        method: ByteView
    ) throws(HTTP1Fault) -> (authority: ByteView?, path: ByteView) {
        for index in 0..<target.count {
            let byte = target[index]
            guard byte > 0x20, byte < 0x7F, byte != UInt8(ascii: "#") else {
                throw .malformed("A target has visible ASCII characters alone, and no fragment.")
            }
        }
        if method == "CONNECT" {
            guard target.firstIndex(of: UInt8(ascii: ":")) != nil, Authority(target) != nil else {
                throw .malformed("The target of CONNECT is a host and a port.")
            }
            return (nil, target)
        }
        if target.starts(with: "/") { return (nil, target) }
        if target == "*", method == "OPTIONS" { return (nil, target) }
        let scheme = ByteView("http://")
        guard target.count > scheme.count, target[0..<scheme.count].equalsIgnoringCase("http://") else {
            throw .malformed("A target is a path, or a URL that begins with http://.")
        }
        let rest = target.dropFirst(scheme.count)
        var end = 0
        while end < rest.count, rest[end] != UInt8(ascii: "/"), rest[end] != UInt8(ascii: "?") { end += 1 }
        guard Authority(rest[0..<end]) != nil else { throw .malformed("The URL of the target names no host.") }
        return (rest[0..<end], rest.dropFirst(end))
    }
}

/// Finds the empty line that ends the head of a request or the fields after the last chunk. Scans each byte once.
///
/// Lines must end with CR and LF, and must contain no control character except tab (RFC 9112 §2.2, RFC 9110 §5.5). This
/// rejects every character that another recipient might treat as the end of a line or of a text.
struct HeadScanner {
    /// The number of scanned bytes.
    private var scanned = 0
    /// The start of the current line.
    private var lineStart = 0
    /// The length of the first line without its line end; nil until the line end has arrived.
    private(set) var firstLineCount: Int?

    /// Scans the bytes that arrived since the last call.
    ///
    /// - Parameters:
    ///   - bytes: all bytes from the start of the head.
    ///   - pausesBehindFirstLine: true to stop after the first line. The caller can then check the line before further
    ///     lines arrive.
    /// - Returns: the length of the head, including its empty line; nil if the head is incomplete.
    mutating func end(in bytes: ByteView, pausesBehindFirstLine: Bool = false) throws(HTTP1Fault) -> Int? {
        while self.scanned < bytes.count {
            let byte = bytes[self.scanned]
            let isAfterReturn = self.scanned > self.lineStart && bytes[self.scanned - 1] == UInt8(ascii: "\r")
            self.scanned += 1
            if byte == UInt8(ascii: "\n") {
                guard isAfterReturn else { throw .malformed("A line ends with CR and LF.") }
                let count = self.scanned - 2 - self.lineStart
                self.lineStart = self.scanned
                let isFirst = self.firstLineCount == nil
                if isFirst { self.firstLineCount = count }
                if count == 0 { return self.scanned }
                if isFirst && pausesBehindFirstLine { return nil }
            } else if isAfterReturn {
                throw .malformed("CR stands before LF alone.")
            } else if byte < 0x20 && byte != UInt8(ascii: "\t") && byte != UInt8(ascii: "\r") || byte == 0x7F {
                throw .malformed("There is a control character in the head.")
            }
        }
        return nil
    }
}

extension ByteView {
    /// Calls `body` with each line of a complete head, without line ends and without the empty line.
    func forEachLine(_ body: (ByteView) throws(HTTP1Fault) -> Void) throws(HTTP1Fault) {
        var rest = self
        while let end = rest.firstIndex(of: UInt8(ascii: "\r")), end > 0 {
            try body(rest[0..<end])
            rest = rest.dropFirst(end + 2)
        }
    }
}

/// Reads a chunked body (RFC 9112 §7.1) as its bytes arrive.
struct ChunkReader {
    enum Part {
        /// Bytes of the body.
        case bytes(ByteView)
        /// The last chunk and the trailer fields have arrived; the trailer fields are ignored.
        case end
    }

    private enum State {
        /// A line with the size of a chunk.
        case size
        case bytes(left: UInt64)
        /// CR and LF after the bytes of a chunk.
        case lineEnd
        /// The fields after the last chunk.
        case trailers
    }

    private var state = State.size
    private var scanner = HeadScanner()

    /// The maximum length of a line with a size. A size has at most sixteen digits, and clients send no extensions.
    static let sizeLineBytesMax = 256

    /// Removes and returns the next part from the start of `bytes`. The caller must pass the remaining bytes again,
    /// followed by new bytes.
    ///
    /// - `trailerBytesMax`: the maximum size of the fields after the last chunk.
    /// - Returns: nil if more bytes are needed.
    mutating func next(_ bytes: inout ByteView, trailerBytesMax: Int) throws(HTTP1Fault) -> Part? {
        while !bytes.isEmpty {
            switch self.state {
            case .size:
                guard let size = try Self.size(&bytes) else { return nil }
                self.state = size == 0 ? .trailers : .bytes(left: size)
                self.scanner = HeadScanner()
            case .bytes(let left):
                let count = Int(min(left, UInt64(bytes.count)))
                defer { bytes = bytes.dropFirst(count) }
                self.state = UInt64(count) == left ? .lineEnd : .bytes(left: left - UInt64(count))
                return .bytes(bytes[0..<count])
            case .lineEnd:
                guard bytes[0] == UInt8(ascii: "\r"), bytes.count < 2 || bytes[1] == UInt8(ascii: "\n") else {
                    throw .malformed("A chunk has not the size it says.")
                }
                guard bytes.count >= 2 else { return nil }
                bytes = bytes.dropFirst(2)
                self.state = .size
            case .trailers:
                guard let end = try self.scanner.end(in: bytes[0..<min(bytes.count, trailerBytesMax)]) else {
                    guard bytes.count < trailerBytesMax else { throw .headTooLarge }
                    return nil
                }
                try bytes[0..<end].forEachLine { line throws(HTTP1Fault) in _ = try line.field() }
                bytes = bytes.dropFirst(end)
                return .end
            }
        }
        return nil
    }

    /// Removes a line with a size from the start of `bytes`, and returns the size; returns nil if the line is
    /// incomplete.
    private static func size(_ bytes: inout ByteView) throws(HTTP1Fault) -> UInt64? {
        var scanner = HeadScanner()
        let line = bytes[0..<min(bytes.count, Self.sizeLineBytesMax)]
        // Scan only the first line, even if a second has begun.
        let end = line.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? line.count
        var (size, digits): (UInt64, Int) = (0, 0)
        while digits < end, let digit = line[digits].hexDigitValue {
            guard size >> 60 == 0 else { throw .malformed("The size of a chunk is too large.") }
            size = size << 4 | UInt64(digit)
            digits += 1
        }
        // After the digits, the line ends or an extension begins.
        if digits < end {
            let rest = line[digits..<end]
            let isExtension = rest[0] == UInt8(ascii: ";") || (rest[0].isBlank && Self.beginsExtension(rest))
            guard digits > 0, isExtension || rest[0] == UInt8(ascii: "\r") else {
                throw .malformed("A chunk begins with its size in hexadecimal digits.")
            }
        }
        _ = try scanner.end(in: line[0..<end])
        guard scanner.firstLineCount != nil else {
            guard bytes.count < Self.sizeLineBytesMax else { throw .malformed("The extension of a chunk is too long.") }
            return nil
        }
        bytes = bytes.dropFirst(end)
        return size
    }

    /// Returns false if something other than an extension follows the blanks.
    private static func beginsExtension(_ rest: ByteView) -> Bool {
        for index in 0..<rest.count where !rest[index].isBlank { return rest[index] == UInt8(ascii: ";") }
        return true
    }
}

/// The reason why a session answers an HTTP/1 request itself. The connection ends after the answer.
enum HTTP1Fault: Error {
    /// A violation of RFC 9112, described for the client.
    case malformed(StaticString)
    case targetTooLong
    /// The request did not arrive in time.
    case timeout
    case headTooLarge
    case expectation
    case coding
    case version
    /// The request exceeds the memory for partly received requests.
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

    /// The message for the client.
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
