import Engine
import Wire

/// What a gateway keeps on a store that it shares with others.
extension GatewayRecords {
    /// Refused pushes of this gateway that are not stored, by topic, as a shared store keeps them.
    func takeRejections() -> [(topic: UInt32, content: [UInt8])] {
        var batch = RecordBatch()
        self.rejections.takeChanges(into: &batch)
        var taken: [(topic: UInt32, content: [UInt8])] = []
        func take(_ key: RecordKey, _ content: ByteView) { taken.append((key.index, content.array)) }
        batch.forEach(take)
        return taken
    }

    /// What all gateways have refused is this, each row one gateway's count of one topic.
    ///
    /// A row that cannot be read is not counted.
    func showRejections(_ rows: [(topic: UInt32, content: [UInt8])]) {
        var sum = Rejections()
        for (topic, content) in rows {
            var row = Rejections()
            guard content.withByteView({ row.restore(topic, $0) }) else { continue }
            sum.addRow(row)
        }
        self.rejectionsOfAll = sum
    }
}
