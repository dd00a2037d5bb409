import Engine
import PostgresStore
import Testing
import Wire

@Suite
struct StoredReportTests {
    private static var report: GatewayReport {
        var report = GatewayReport(name: "host:443", version: "1.2.3")
        report.workers = [
            .init(topic: .first, connected: 3, slots: 8, busy: 2, hearsConditions: true),
            .init(topic: TopicIndex(rawValue: 9), connected: 1, slots: 1, busy: 1, hearsConditions: false),
        ]
        report.wakes = 77
        report.digests = ["policy": 1, "topics": .max]
        report.isDraining = true
        return report
    }

    @Test("A report is read back as it was kept, also with more behind it")
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
        }
    }

    @Test("A report that is cut off anywhere is none")
    func cutOff() {
        let bytes = Self.report.stored()
        for count in bytes.indices {
            #expect(Array(bytes[..<count]).withByteView { GatewayReport(stored: $0) } == nil)
        }
    }
}
