internal import Wire

/// Writes field blocks that refer to nothing but the static table, so that there is nothing to keep for a connection.
///
/// No Huffman code: it would make the answer to a push ten bytes shorter, and takes libnghttp2 a twelfth of the push.
enum FieldEncoder {
    /// Literals that are not indexed: RFC 7541 §6.2.2.
    private static let literal: UInt8 = 0
    private static let literalStatus: UInt8 = 8

    /// The most bytes of a value whose length takes one byte.
    private static let shortCountMax = 0x7E

    /// Appends a field whose name and value are literals.
    @inline(__always)
    static func append(_ name: ByteView, _ value: ByteView, to block: inout ByteBuffer) {
        self.append(name: name, to: &block)
        self.append(count: value.count, to: &block)
        block.append(value)
    }

    /// Appends a field whose value, which is no longer than an identifier or a number, `write` appends.
    @inline(__always)
    static func append(_ name: ByteView, to block: inout ByteBuffer, _ write: (inout ByteBuffer) -> Void) {
        self.append(name: name, to: &block)
        let start = block.count
        block.append(0)
        write(&block)
        let count = block.count - start - 1
        precondition(count <= self.shortCountMax, "a value is written in place that has a short length")
        block.overwrite(memoryOf: UInt8(truncatingIfNeeded: count), at: start)
    }

    @inline(__always)
    private static func append(name: ByteView, to block: inout ByteBuffer) {
        block.append(self.literal)
        self.append(count: name.count, to: &block)
        block.append(name)
    }

    /// Appends the field of a response that comes first.
    static func append(status: Int, to block: inout ByteBuffer) {
        let index: UInt8? =
            switch status {
            case 200: 8
            case 204: 9
            case 400: 12
            case 404: 13
            case 500: 14
            default: nil
            }
        if let index { return block.append(0x80 | index) }
        block.append(Self.literalStatus)
        block.append(3)
        block.appendDecimal(Int64(status))
    }

    /// Appends the length of a string that is not Huffman code: seven bits and more, RFC 7541 §5.
    @inline(__always)
    private static func append(count: Int, to block: inout ByteBuffer) {
        guard count >= 0x7F else { return block.append(UInt8(truncatingIfNeeded: count)) }
        block.append(0x7F)
        var rest = count - 0x7F
        while rest >= 0x80 {
            block.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        block.append(UInt8(rest))
    }

    /// Calls `body` with the name and the value of each field of a block that `append` has written, valid during the
    /// call.
    static func forEachField(of block: ByteView, _ body: (ByteView, ByteView) -> Void) {
        var rest = block
        func takeString() -> ByteView {
            var (count, prefix) = (Int(rest[0]), 1)
            if count == 0x7F {
                var shift = 0
                repeat {
                    count += Int(rest[prefix] & 0x7F) << shift
                    shift += 7
                    prefix += 1
                } while rest[prefix - 1] >= 0x80
            }
            defer { rest = rest.dropFirst(prefix + count) }
            return rest.slice(prefix, count: count)
        }
        while !rest.isEmpty {
            rest = rest.dropFirst(1)
            let name = takeString()
            body(name, takeString())
        }
    }
}
