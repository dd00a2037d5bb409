import Engine
import Policy
import PostgresStore
import Testing
import Wire

@Suite
struct NoticePayloadTests {
    private static let sender = GatewayNumber(rawValue: 3)
    private static let receiver = GatewayNumber(rawValue: 4)
    private static let items: [NoticePayload.Item] = [
        .topics, .values, .notice(.ready(.first)), .notice(.conditions(.numbered(5), .first)),
        .notice(.ended(holder: Self.receiver, .numbered(6), reason: .lost)),
        .notice(.ended(holder: Self.receiver, .numbered(7), reason: nil)), .notice(.answeredLate(.numbered(8))),
    ]

    @Test("A receiver reads all notices except its own and those of wakes held by another gateway")
    func roundTrip() {
        let (text, end) = NoticePayload.write(Self.items, sender: Self.sender)
        #expect(end == Self.items.count)
        #expect(NoticePayload.read(text, receiver: Self.receiver) == Self.items)
        #expect(NoticePayload.read(text, receiver: Self.sender).isEmpty)
        #expect(NoticePayload.read(text, receiver: GatewayNumber(rawValue: 5)).count == 5)
    }

    @Test("Many notices are sent in payloads that PostgreSQL accepts, each notice once")
    func crowd() {
        var queue = NoticeQueue()
        for number in 0..<500 {
            for _ in 0..<2 {
                queue.append(.notice(.ended(holder: Self.receiver, .numbered(UInt64(number)), reason: .deadline)))
            }
        }
        var heard: [NoticePayload.Item] = []
        while let payload = queue.takePayload(sender: Self.sender) {
            #expect(payload.utf8.count <= NoticePayload.bytesMax)
            heard += NoticePayload.read(payload, receiver: Self.receiver)
        }
        #expect(heard.count == 500)
        #expect(Set(heard).count == 500)
    }

    @Test(
        "A malformed notice is ignored",
        arguments: [
            "", "x", "\n", "3", "3\nq", "3\nr", "3\nr x", "3\nr -1", "3\ne 4 zz -", "3\nc 00 1", "3\na zz",
            "99999999999\nt", "3\ne 4 00000000000000000000000000000007 because", "3\nt t", "r 1",
        ]
    )
    func strange(_ text: String) {
        #expect(NoticePayload.read(text, receiver: Self.receiver).isEmpty)
    }

    @Test("The notice queue never exceeds its maximum")
    func bound() {
        var queue = NoticeQueue()
        for number in 0..<(NoticeQueue.countMax + 100) {
            queue.append(.notice(.ended(holder: Self.receiver, .numbered(UInt64(number)), reason: nil)))
        }
        #expect(queue.items.count == NoticeQueue.countMax)
    }
}

@Suite
struct StoredReportTests {
    private static var report: GatewayReport {
        var report = GatewayReport(name: "host:443", version: "1.2.3")
        report.workers = [
            .init(.first, .init(connected: 3, slots: 8, busy: 2), receivesConditions: true),
            .init(TopicIndex(rawValue: 9), .init(connected: 1, slots: 1, busy: 1), receivesConditions: false),
        ]
        report.wakes = 77
        report.digests = ["policy": 1, "topics": .max]
        report.isDraining = true
        report.offers = [
            .init(slots: FreeSlots(topic: .first, takesPushes: true, count: 5), streams: 2),
            .init(
                slots: FreeSlots(
                    topic: TopicIndex(rawValue: 9),
                    takesPushes: false,
                    tasks: ["a.*", "b"],
                    sessions: ["s"],
                    resources: ["gpu", "npu"],
                    namesDevices: true
                ),
                streams: 1
            ),
        ]
        var counts = DurationCounts()
        for bucket in [0, 77, DurationCounts.bucketCount - 1] { counts.add(Int64(bucket) + 1, bucket: bucket) }
        counts.add(sum: 123_456, max: 1_000)
        report.durations = [
            .init(topic: .first, kind: .push, worker: nil, counts: counts),
            .init(topic: .first, kind: .push, worker: "", counts: counts),
            .init(topic: TopicIndex(rawValue: 9), kind: .processing, worker: "night", counts: counts),
        ]
        return report
    }

    @Test("A report is restored unchanged, even with more bytes after it")
    func roundTrip() throws {
        for rest in [[], [1, 2, 3]] as [[UInt8]] {
            let bytes = Self.report.stored() + rest
            let found = try #require(bytes.withByteView { GatewayReport(stored: $0) })
            #expect(found.name == "host:443")
            #expect(found.version == "1.2.3")
            #expect(found.workers == Self.report.workers)
            #expect(found.wakes == 77)
            #expect(found.digests == Self.report.digests)
            #expect(found.isDraining)
            #expect(found.offers == Self.report.offers)
            #expect(found.durations == Self.report.durations)
        }
    }

    @Test("Durations are kept up to a size: those of topics, then of the workers with the most wakes")
    func manyDurations() throws {
        var report = Self.report
        report.offers = []
        func row(_ worker: Int?, _ times: Int) -> WakeDurationRow {
            var counts = DurationCounts()
            counts.add(Int64(times) + 1, bucket: 7)
            counts.add(sum: 1, max: 1 << 30)
            return .init(topic: .first, kind: .push, worker: worker.map { "worker \($0)" }, counts: counts)
        }
        report.durations = (0..<1000).map { row($0, $0 % 100) } + [row(nil, 3)]
        let bytes = report.stored()
        let found = try #require(bytes.withByteView { GatewayReport(stored: $0) })
        #expect(bytes.count < GatewayReport.durationBytesMax + 200)
        #expect(found.durations.first == report.durations.last)
        #expect(found.durations.count > 200)
        #expect(found.durations.dropFirst().prefix(10).allSatisfy { $0.counts == row(0, 99).counts })
        report.durations.shuffle()
        #expect(report.stored() == bytes, "the order of the rows does not decide which are kept")
    }

    @Test("Sums of durations that no gateway can have are bounded, so that many of them can be added")
    func impossibleDurations() throws {
        var report = Self.report
        var counts = DurationCounts()
        counts.add(1, bucket: 0)
        counts.add(sum: .max, max: .max)
        report.durations = [.init(topic: .first, kind: .push, worker: nil, counts: counts)]
        let bytes = report.stored()
        let found = try #require(bytes.withByteView { GatewayReport(stored: $0) }).durations.map(\.counts)
        let sum = try #require(found.first)
        var all = DurationCounts()
        for _ in 0..<1000 { all += sum }
        #expect(found != [counts] && all != sum)
    }

    @Test("Offers are kept up to a size")
    func longOffers() throws {
        var report = Self.report
        report.durations = []
        let offer = { (length: Int) -> StreamOffer in
            let tasks = (0..<length).map { "\($0)" + String(repeating: "a", count: 250) }
            return .init(slots: FreeSlots(topic: .first, takesPushes: false, tasks: tasks, count: 1), streams: 1)
        }
        report.offers = [offer(40), offer(64), offer(1), offer(30)]
        let bytes = report.stored()
        let found = try #require(bytes.withByteView { GatewayReport(stored: $0) })
        #expect(found.offers == [offer(40), offer(1)])
        #expect(bytes.count < GatewayReport.offerBytesMax + 200)
    }

    @Test("The name of a refusal that is not UTF-8 is kept byte by byte")
    func refusedNames() {
        let row: [UInt8] = [255] + Array(repeating: 0xFF, count: 255) + [3, 0, 0, 0, 0, 0, 0, 0]
        var counts = RefusedCounts()
        let isValid = row.withByteView { counts.add($0) }
        var buffer = ByteBuffer()
        counts.writeBinary(to: &buffer)
        #expect(isValid && buffer.view.array == row)
    }

    @Test("A truncated report is refused")
    func cutOff() {
        let bytes = Self.report.stored()
        for count in bytes.indices {
            #expect(Array(bytes[..<count]).withByteView { GatewayReport(stored: $0) } == nil)
        }
    }
}
