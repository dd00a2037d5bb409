package import Engine
import Wire

extension RecordStore {
    /// Loads all records; throws if a key occurs twice.
    package func loadAll() throws(StoreError) -> SimulatedStore.Records {
        var records = SimulatedStore.Records()
        try self.load { (key, content) throws(StoreError) in
            guard records.updateValue(content.array, forKey: key) == nil else {
                throw StoreError(message: "\(key) was handed over twice")
            }
        }
        return records
    }

    package func commit(_ records: SimulatedStore.Records) throws(StoreError) {
        var batch = RecordBatch()
        let sorted = records.sorted { ($0.key.kind.rawValue, $0.key.index) < ($1.key.kind.rawValue, $1.key.index) }
        for (key, content) in sorted { batch.append(key) { $0.append(content) } }
        try self.commit(batch)
    }
}

extension RecordBatch {
    package var records: [(key: RecordKey, content: [UInt8])] {
        var records: [(key: RecordKey, content: [UInt8])] = []
        func note(key: RecordKey, content: ByteView) { records.append((key, content.array)) }
        self.forEach(note)
        return records
    }
}

extension DeviceEngine {
    package func restore(_ key: RecordKey, _ content: [UInt8]) throws(StoreError) {
        var buffer = ByteBuffer()
        buffer.append(content)
        try self.restore(key, buffer.view)
    }
}
