internal import Wire

/// Looks for the empty line that ends the head of a request, or the fields behind its last chunk; each byte once.
///
/// Lines end with CR and LF, and no other control character than a tab stands in them (RFC 9112 §2.2, RFC 9110 §5.5):
/// whatever else a recipient might take for the end of a line or of a text never gets further than this.
struct HeadScanner {
    /// The bytes that were looked at.
    private var scanned = 0
    /// Where the present line begins.
    private var lineStart = 0
    /// The bytes of the first line without its end; nil while it goes on.
    private(set) var firstLineCount: Int?

    /// Looks at what has come since the last call.
    ///
    /// - Parameters:
    ///   - bytes: from the beginning of the head on.
    ///   - pausesBehindFirstLine: whether to stop there, so that it is judged before what follows.
    /// - Returns: how many bytes the head has, its empty line included; nil when more of it is to come.
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
    /// Calls `body` with each line of a head that `HeadScanner` found, without its end, but for the empty one.
    func forEachLine(_ body: (ByteView) throws(HTTP1Fault) -> Void) throws(HTTP1Fault) {
        var rest = self
        while let end = rest.firstIndex(of: UInt8(ascii: "\r")), end > 0 {
            try body(rest[0..<end])
            rest = rest.dropFirst(end + 2)
        }
    }
}
