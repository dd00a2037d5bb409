internal import CXXHash
package import Wire

/// The checksum of a row: its content cannot change, nor take another row's place, without being noticed.
package enum RowChecksum {
    /// The checksum of a row with this content at the place `row`.
    package static func of(_ content: ByteView, row: Int64) -> Int64 {
        let hash = unsafe XXH3_64bits_withSeed(
            content.buffer.baseAddress,
            content.count,
            XXH64_hash_t(bitPattern: row)
        )
        return Int64(bitPattern: hash)
    }
}
