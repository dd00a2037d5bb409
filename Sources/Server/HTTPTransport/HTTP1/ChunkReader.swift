internal import Wire

/// Reads a chunked body (RFC 9112 §7.1) piece by piece.
struct ChunkReader {
    enum Part {
        /// Bytes of the body.
        case bytes(ByteView)
        /// The last chunk has come, and the fields behind it, of which nobody here makes anything.
        case end
    }

    private enum State {
        /// A line with the size of a chunk.
        case size
        case bytes(left: UInt64)
        /// CR and LF behind the bytes of a chunk.
        case lineEnd
        /// The fields behind the last chunk.
        case trailers
    }

    private var state = State.size
    private var scanner = HeadScanner()

    /// The most bytes of a line with a size; nobody sends extensions, and no size needs more than sixteen digits.
    static let sizeLineBytesMax = 256

    /// Takes the next part from the front of `bytes`; what is left must come again, with more behind it.
    ///
    /// - Parameter trailerBytesMax: the most bytes of the fields behind the last chunk.
    /// - Returns: nil when more has to come.
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

    /// Takes a line with a size from the front of `bytes`; nil when more of it has to come.
    private static func size(_ bytes: inout ByteView) throws(HTTP1Fault) -> UInt64? {
        var scanner = HeadScanner()
        let line = bytes[0..<min(bytes.count, Self.sizeLineBytesMax)]
        // A second line may have begun, of which nothing is known yet.
        let end = line.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? line.count
        var (size, digits): (UInt64, Int) = (0, 0)
        while digits < end, let digit = line[digits].hexDigitValue {
            guard size >> 60 == 0 else { throw .malformed("The size of a chunk is too large.") }
            size = size << 4 | UInt64(digit)
            digits += 1
        }
        // Behind the digits the line ends, or an extension begins.
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

    /// Whether behind blanks there is an extension, as far as that can be seen.
    private static func beginsExtension(_ rest: ByteView) -> Bool {
        for index in 0..<rest.count where !rest[index].isBlank { return rest[index] == UInt8(ascii: ";") }
        return true
    }
}
