import Gateway
import Policy
import Wire

@testable import Engine

/// The records of the store: several of them, in the format of a commit.
enum RecordTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        for losesWakes in [true, false] { try RestoredEngine.check(input, losesWakes: losesWakes) }
        var records = RecordRun(input)
        while let (key, content) = records.next() {
            switch key.kind {
            case .clock: try self.checkClock(content)
            case .topic: try self.checkTopic(content)
            case .device: try self.checkDevice(content)
            case .rejections: try self.checkRejections(key, content)
            case .policies: try self.checkPolicies(content)
            case .events: try self.checkEvents(content)
            case .tasks: try self.checkTasks(content)
            case .origin: break
            }
        }
    }

    private static func checkClock(_ content: ByteView) throws(BrokenPromise) {
        guard let clock = ClockRecord(stored: content) else { return }
        var written = ByteBuffer()
        clock.store(to: &written)
        try promise(ClockRecord(stored: written.view) == clock, "a clock changed when it was rewritten")
        for id in [clock.boot?.id, nil] {
            let resumed = PolicyClock.resumed(clock, wall: 1_700_000_000_000, boot: 5, bootID: id, jumpMax: 1 << 40)
            try promise(resumed.clock.now(boot: 6) >= clock.now, "policy time went back")
        }
    }

    private static func checkPolicies(_ content: ByteView) throws(BrokenPromise) {
        guard var policies = PolicyVersions(stored: content) else { return }
        var written = ByteBuffer()
        policies.store(to: &written)
        try promise(written.view == content, "launch policies changed when they were rewritten")
        _ = policies.begin(EngineConfiguration(), at: .distantFuture)
        try promise(policies.current?.number != nil, "no launch policy is in effect")
    }

    private static func checkTasks(_ content: ByteView) throws(BrokenPromise) {
        guard let row = TaskRow(stored: content) else { return }
        var written = ByteBuffer()
        row.store(to: &written)
        guard let again = TaskRow(stored: written.view) else { throw BrokenPromise("tasks cannot be read again") }
        var rewritten = ByteBuffer()
        again.store(to: &rewritten)
        try promise(rewritten.view == written.view, "tasks changed when they were rewritten")
        try promise(again.policy.waiting.count == row.policy.waiting.count, "a request is missing")
    }

    private static func checkEvents(_ content: ByteView) throws(BrokenPromise) {
        guard let record = try? EventRecord(content), let events = self.events(record) else { return }
        var written = ByteBuffer()
        let end = EventRecord.write(
            events,
            from: 0,
            sequence: record.sequence,
            keyMark: record.keyMark,
            to: &written
        )
        guard end == events.count else { return }
        guard let again = try? EventRecord(written.view) else { throw BrokenPromise("events cannot be read again") }
        let isSame = again.sequence == record.sequence && again.keyMark == record.keyMark
        try promise(isSame && self.events(again) == events, "events changed when they were rewritten")
        try promise(written.count <= content.count, "events grew when they were rewritten")
    }

    private static func events(_ record: EventRecord) -> [HistoryEvent]? {
        var events: [HistoryEvent] = []
        do { try record.read { events.append($0) } } catch { return nil }
        return events
    }

    private static func checkTopic(_ content: ByteView) throws(BrokenPromise) {
        // A name is text. No record contains a name that is not valid text.
        guard let stored = Topic.read(stored: content), let name = String(validating: stored.name, as: UTF8.self)
        else { return }
        var topic = Topic(parameters: Parameters())
        topic.counters = stored.counters
        var written = ByteBuffer()
        topic.store(name, to: &written)
        let again = Topic.read(stored: written.view)
        try promise(again?.name == stored.name && again?.counters == stored.counters, "a topic changed when rewritten")
    }

    /// Checks that a record that was read and written again has the same content. Records must not contain data that is
    /// not written again.
    private static func checkDevice(_ content: ByteView) throws(BrokenPromise) {
        guard let written = self.rewritten(content) else { return }
        let again = written.withByteView { self.rewritten($0) }
        try promise(again == written, "a device changed when it was rewritten: \(written)")
        let isShorter = written.count < content.count
        try promise(isShorter || written == content.array, "a device was read as another: \(written)")
    }

    /// Reads the record of a device and writes it again. Returns nil if it cannot be read.
    private static func rewritten(_ content: ByteView) -> [UInt8]? {
        guard let record = DeviceRecord(stored: content) else { return nil }
        defer { record.deallocate() }
        var written = ByteBuffer()
        // At a time this long ago, nothing is forgotten.
        record.store(to: &written, at: .distantPast)
        return written.view.array
    }

    private static func checkRejections(_ key: RecordKey, _ content: ByteView) throws(BrokenPromise) {
        var rejections = Rejections()
        guard rejections.restore(key.index, content) else { return }
        let counts = key.index == RecordKey.everyTopic ? rejections.total : rejections[TopicIndex(rawValue: key.index)]
        var again = Rejections()
        for (reason, count) in counts.enumerated() where count != 0 {
            // Counts for a topic are also counted for all topics together.
            again.count(reason, TopicIndex(rawValue: key.index), by: count)
        }
        var batch = RecordBatch()
        again.takeChanges(into: &batch)
        var records = RecordRun(batch.bytes)
        while let (_, content) = records.next() {
            var last = Rejections()
            let isTaken = last.restore(RecordKey.everyTopic, content)
            try promise(isTaken && last.total == counts, "rejections changed when they were rewritten")
        }
    }
}
