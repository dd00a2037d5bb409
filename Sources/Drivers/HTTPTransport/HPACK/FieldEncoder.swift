package import Bytes

/// Writes field blocks that refer to nothing but the static table, so that there is nothing to keep for a connection.
///
/// No Huffman code: it would make the answer to a push ten bytes shorter, and takes libnghttp2 a twelfth of the push.
package enum FieldEncoder {
    /// Literals that are not indexed: RFC 7541 §6.2.2.
    private static let literal: UInt8 = 0
    private static let literalStatus: UInt8 = 8

    /// Appends the fields of a response, its status first.
    package static func encode(_ response: Response, to block: inout ByteBuffer) {
        self.encode(status: response.status, to: &block)
        for index in 1..<response.fieldCount {
            let field = response.field(at: index)
            let value = response.value(of: field)
            block.append(Self.literal)
            self.append(count: field.name.count, to: &block)
            block.append(field.name)
            self.append(count: value.count, to: &block)
            block.append(value)
        }
    }

    private static func encode(status: Int, to block: inout ByteBuffer) {
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
}
