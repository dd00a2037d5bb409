import Bytes
import DeviceEngine

/// The content of a row: what this build writes first of all, and then records, one behind the other.
///
/// Byte 0 is the version, bytes 1...8 are the id of the oldest row when this one was written, little-endian.
enum JournalRow {
    static let version: UInt8 = 1
    static let headerBytes = 9

    static func appendHeader(to buffer: inout ByteBuffer) {
        buffer.append(Self.version)
        buffer.append(memoryOf: UInt64(0))
    }

    static func setFirst(_ first: Int64, in buffer: inout ByteBuffer) {
        buffer.overwrite(memoryOf: first.littleEndian, at: 1)
    }

    /// The id of the oldest row when this one was written.
    static func first(of content: ByteView) -> Int64 {
        Int64(littleEndian: content.load(Int64.self, at: 1))
    }

    /// What is wrong with the row, as a clause; nil when nothing is.
    static func fault(_ content: ByteView, checksum: Int64, row: Int64) -> String? {
        guard RowChecksum.of(content, row: row) == checksum else { return "the checksum of row \(row) is wrong" }
        guard content.count >= Self.headerBytes else { return "row \(row) is too short" }
        guard content[0] == Self.version else {
            return "row \(row) has version \(content[0]), and this build reads version \(Self.version)"
        }
        return nil
    }
}
