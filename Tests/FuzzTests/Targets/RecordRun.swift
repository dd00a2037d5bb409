import Engine
import Wire

/// The consecutive records in some bytes, up to the first invalid one.
struct RecordRun {
    private let bytes: ByteView
    private var offset: Int

    init(_ bytes: ByteView, from offset: Int = 0) {
        self.bytes = bytes
        self.offset = offset
    }

    mutating func next() -> (key: RecordKey, content: ByteView)? {
        guard let (key, count) = RecordBatch.header(of: self.bytes, at: self.offset) else { return nil }
        let start = self.offset + RecordBatch.headerCount
        self.offset = start + count
        return (key, self.bytes[start..<self.offset])
    }
}
