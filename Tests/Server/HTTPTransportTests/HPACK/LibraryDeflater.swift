import CNghttp2

/// libnghttp2's encoder of field blocks, which chooses among all ways to write a field.
@safe
final class LibraryDeflater {
    struct Field: Equatable {
        var name: [UInt8]
        var value: [UInt8]
        /// Whether it is written as one that is never indexed.
        var isSecret = false
    }

    private var deflater: OpaquePointer?

    init(tableBytesMax: Int) {
        let result = unsafe nghttp2_hd_deflate_new(&self.deflater, tableBytesMax)
        precondition(result == 0)
    }

    deinit { unsafe nghttp2_hd_deflate_del(self.deflater) }

    /// Announces the size of the table with the next block.
    func resize(to bytes: Int) {
        let result = unsafe nghttp2_hd_deflate_change_table_size(self.deflater, bytes)
        precondition(result == 0)
    }

    func block(_ fields: [Field]) -> [UInt8] {
        let lines = unsafe fields.map { field in
            let flags = field.isSecret ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE
            return unsafe nghttp2_nv(
                name: Self.copy(field.name),
                value: Self.copy(field.value),
                namelen: field.name.count,
                valuelen: field.value.count,
                flags: UInt8(flags.rawValue)
            )
        }
        defer {
            for index in fields.indices {
                unsafe lines[index].name.deallocate()
                unsafe lines[index].value.deallocate()
            }
        }
        var block = unsafe [UInt8](repeating: 0, count: nghttp2_hd_deflate_bound(self.deflater, lines, lines.count))
        let count = unsafe nghttp2_hd_deflate_hd(self.deflater, &block, block.count, lines, lines.count)
        precondition(count >= 0)
        return Array(block[..<count])
    }

    private static func copy(_ bytes: [UInt8]) -> UnsafeMutablePointer<UInt8> {
        let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: bytes.count + 1)
        for (index, byte) in bytes.enumerated() { unsafe (copy + index).initialize(to: byte) }
        return unsafe copy
    }
}
