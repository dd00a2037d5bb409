import CNghttp2
import HTTPTransport
import Wire

/// The decoder of field blocks, compared with libnghttp2's decoder: both must return the same fields and the same
/// faults, for whole blocks and for pieces.
///
/// The first byte gives the size of the pieces. Then follow the blocks of one connection, each after a byte with its
/// length.
enum FieldBlockTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        var reader = InputReader(input)
        let pieceBytes = 1 + Int(reader.byte() & 31)
        let library = LibraryInflater()
        var memory = FieldDecoderMemory()
        var whole = FieldDecoder()
        var pieces = FieldDecoder()
        while !reader.isAtEnd {
            let block = reader.view(Int(reader.byte()))
            let expected = library.fields(block)
            try promise(Self.fields(&whole, &memory, block, .max) == expected, "libnghttp2 reads other fields")
            try promise(Self.fields(&pieces, &memory, block, pieceBytes) == expected, "other fields in pieces")
            guard expected != nil else { return }
        }
    }

    /// - Returns: the fields and their notes; nil for a fault.
    private static func fields(
        _ decoder: inout FieldDecoder,
        _ memory: inout FieldDecoderMemory,
        _ block: ByteView,
        _ pieceBytes: Int
    ) -> [[UInt8]]? {
        var fields: [[UInt8]] = []
        var start = 0
        repeat {
            let piece = block.slice(start, count: min(pieceBytes, block.count - start))
            start += piece.count
            do throws(FieldDecoder.Fault) {
                try decoder.decode(piece, isLast: start == block.count, in: &memory) { name, value, note in
                    let field = name.array + [0] + value.array
                    let expected = field.reduce(UInt32(1)) { ($0 &* 31 &+ UInt32($1)) | 1 }
                    // A note that belongs to another field would change the field.
                    fields.append(note == 0 || note == expected ? field : [])
                    note = expected
                }
            } catch {
                return nil
            }
        } while start < block.count
        return fields
    }
}

/// libnghttp2's decoder.
@safe
private final class LibraryInflater {
    private var inflater: OpaquePointer?

    init() {
        let result = unsafe nghttp2_hd_inflate_new(&self.inflater)
        precondition(result == 0)
    }

    deinit { unsafe nghttp2_hd_inflate_del(self.inflater) }

    /// - Returns: nil for a fault.
    func fields(_ block: ByteView) -> [[UInt8]]? {
        var fields: [[UInt8]] = []
        var rest = block.array
        while true {
            var (field, flags) = unsafe (nghttp2_nv(), Int32(0))
            let taken = unsafe nghttp2_hd_inflate_hd2(self.inflater, &field, &flags, rest, rest.count, 1)
            guard taken >= 0 else { return nil }
            rest.removeFirst(taken)
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                let name = unsafe UnsafeBufferPointer(start: field.name, count: field.namelen)
                let value = unsafe UnsafeBufferPointer(start: field.value, count: field.valuelen)
                fields.append(unsafe Array(name) + [0] + Array(value))
            } else if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                let result = unsafe nghttp2_hd_inflate_end_headers(self.inflater)
                precondition(result == 0)
                return fields
            }
        }
    }
}
