internal import Wire

/// What the head of a request says of the message (RFC 9112 §6 and §9); its fields stand in the state of its stream.
struct HTTP1Head {
    enum Body: Equatable {
        case none
        case length(UInt64)
        case chunked
    }

    private(set) var body = Body.none
    /// Whether it is HTTP/1.0: its client understands no chunks and keeps no connection.
    private(set) var isOld = false
    /// Whether its client wants no further answer on the connection.
    private(set) var isLast = false
    /// Whether its client waits for `100 Continue` before it sends the body.
    var isAwaitingContinue = false
    private(set) var isHEAD = false

    /// Reads a head into the state of its stream.
    ///
    /// - Parameters:
    ///   - bytes: a head that `HeadScanner` found.
    ///   - headerListBytesMax: the most bytes its fields may have, as HTTP/2 counts them.
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
        // A URL may leave out the path, but not what it means.
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

/// The fields that say how the message is framed, as they come.
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
        guard value.isEmpty || Authority(value) != nil else { throw .malformed("Host is no host and port.") }
        self.hasHost = true
    }

    private mutating func takeLength(_ value: ByteView) throws(HTTP1Fault) {
        guard self.length == nil else { throw .malformed("There is more than one Content-Length.") }
        guard let length = value.decimal else { throw .malformed("Content-Length is no number.") }
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
        // Chunks that are not the last coding, or twice one, leave open where the body ends.
        guard isWord, chunkedAt == 0 || chunkedAt == count else {
            throw .malformed("Transfer-Encoding is no list of codings that ends with chunked.")
        }
        throw .coding
    }

    /// - Throws: for two fields that say where the body ends, of which one may be a lie.
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
    /// A line of a head as a field: nothing before the name, the colon right behind it, blanks around the value not
    /// part of it (RFC 9112 §5).
    func field() throws(HTTP1Fault) -> (name: ByteView, value: ByteView) {
        guard let colon = self.firstIndex(of: UInt8(ascii: ":")), self[0..<colon].isToken else {
            throw .malformed("A field is a name, a colon right behind it, and a value on the same line.")
        }
        return (self[0..<colon], self.dropFirst(colon + 1).trimmed)
    }

    /// The bytes without the blanks at both ends.
    fileprivate var trimmed: ByteView {
        var (start, end) = (0, self.count)
        while start < end, self[start].isBlank { start += 1 }
        while end > start, self[end - 1].isBlank { end -= 1 }
        return self[start..<end]
    }

    /// Calls `body` with each element of a list with commas, blanks around it taken away.
    fileprivate func forEachElement(_ body: (ByteView) -> Void) {
        var rest = self
        while let comma = rest.firstIndex(of: UInt8(ascii: ",")) {
            body(rest[0..<comma].trimmed)
            rest = rest.dropFirst(comma + 1)
        }
        body(rest.trimmed)
    }
}
