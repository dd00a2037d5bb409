import Engine
import WakeGateTestKit

/// Batches such as an engine writes, all from one seed.
struct FaultWorkload {
    private var generator: SeededGenerator
    private let deviceCount: Int

    init(seed: UInt64, deviceCount: Int = 20) {
        self.generator = SeededGenerator(seed: seed)
        self.deviceCount = deviceCount
    }

    mutating func once(in count: Int) -> Bool { self.generator.once(in: count) }

    mutating func batch() -> SimulatedStore.Records {
        var records: SimulatedStore.Records = [RecordKey(.clock): self.content(16)]
        // Now and then a batch of many rows.
        let isLarge = self.generator.once(in: 6)
        for _ in 0..<(isLarge ? 12 : self.generator.number(in: 1...8)) {
            let key = RecordKey(.device, UInt32(self.generator.number(below: self.deviceCount)))
            let size = isLarge ? 5000 : self.generator.pick([0, 9, 120, 400, 400, 1500, 5000])
            records[key] = self.content(size)
        }
        if self.generator.once(in: 4) { records[RecordKey(.topic, 0)] = self.content(200) }
        if self.generator.once(in: 8) { records[RecordKey(.rejections, RecordKey.everyTopic)] = self.content(40) }
        return records
    }

    /// Bytes that no other record of the run has.
    private mutating func content(_ count: Int) -> [UInt8] {
        var word = self.generator.next()
        var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: word), count: count)
        for place in 0..<min(8, count) {
            bytes[place] = UInt8(truncatingIfNeeded: word)
            word >>= 8
        }
        return bytes
    }
}
