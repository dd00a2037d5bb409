import CommandLineTool
import Testing

@Suite("The size of a cluster, computed")
struct ClusterSizeTests {
    private func size(_ devices: Double, _ rate: Double, payload: Double = 200, history: Double = 7) -> ClusterSize {
        ClusterSize(ClusterSize.Load(devices: devices, rate: rate, payload: payload, history: history))
    }

    @Test("The numbers of the article, by hand")
    func numbers() {
        let size = self.size(1_000_000, 1000)
        #expect(size.launches == 1000)
        // Rows of 418 bytes in pages that are filled to 0.7, with a growth factor of 1.9, and 600 bytes of indexes;
        // wakes of ten minutes.
        #expect(abs(size.deviceBytes - (1e6 * (418 / 0.7 * 1.9 + 600) + 1000 * 600 * 380)) < 1)
        // A push is 196 bytes and a launch with its result 270.
        #expect(abs(size.historyBytes - 1000 * 466 * 7 * 86_400) < 1)
        #expect(size.gateways == 2)
        #expect(size.connections == 46)
        #expect(size.cores == 2)
        #expect(size.limits.isEmpty && size.databases == 1)
    }

    @Test("A device launches once in 15 minutes at the most, and never oftener than it is pushed")
    func launches() {
        #expect(self.size(900_000, 5000).launches == 1000)
        #expect(self.size(900_000, 10).launches == 10)
    }

    @Test("More of anything never takes less of anything", arguments: [1e5, 1e6, 1e7, 1e8])
    func growth(devices: Double) {
        let less = self.size(devices, 2000, payload: 100, history: 1)
        for more in [
            self.size(devices * 2, 2000, payload: 100, history: 1),
            self.size(devices, 4000, payload: 100, history: 1),
            self.size(devices, 2000, payload: 1000, history: 1),
            self.size(devices, 2000, payload: 100, history: 30),
        ] {
            #expect(more.cores >= less.cores && more.gateways >= less.gateways)
            #expect(more.deviceBytes >= less.deviceBytes && more.historyBytes >= less.historyBytes)
            #expect(more.logBytes >= less.logBytes && more.diskBytes > less.diskBytes)
            #expect(more.databases >= less.databases)
        }
    }

    @Test(
        "A page is written whole once between two checkpoints: pushes to few devices share that, those to many do not"
    )
    func wholePages() {
        let (few, many) = (self.size(10_000, 1000), self.size(100_000_000, 1000))
        let plain = (368.0 + 200) * 1000
        #expect(few.logBytes - few.launches * 3100 < plain * 1.1)
        #expect(many.logBytes - many.launches * 3100 > plain + 1000 * 2 * 4096)
        #expect(many.logBytes - many.launches * 3100 <= plain + 1000 * 3 * 4096)
    }

    @Test("Where one primary ends it says why, and each part of it fits into one")
    func limits() {
        #expect(self.size(400_000_000, 1000).limits == [.devices])
        #expect(self.size(100_000_000, 50_000).limits == [.log])
        #expect(self.size(1_000_000, 1_000_000).limits.contains(.processors))
        for size in [self.size(400_000_000, 1000), self.size(1e9, 1e5), self.size(1_000_000, 1_000_000)] {
            #expect(size.databases > 1 && size.databases.nonzeroBitCount == 1)
            #expect(size.part(of: size.databases).limits.isEmpty)
            #expect(!size.part(of: size.databases / 2).limits.isEmpty)
        }
    }

    @Test("The text names what is asked for and what it takes")
    func text() {
        let text = SizeText.text(self.size(100_000_000, 50_000))
        #expect(
            text.hasPrefix("load          100,000,000 devices, 50,000 pushes of 200 bytes and at most 50,000 launches")
        )
        #expect(text.contains("\none primary   is not enough: its write-ahead log\n"))
        #expect(text.contains("\ndatabases     2, each with the devices of a part of all tokens; each of them:\n"))
        #expect(!SizeText.text(self.size(1000, 1)).contains("one primary"))
    }

    @Test(
        "Bytes and counts in words",
        arguments: [
            (0.0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (2e9, "2 GB"), (6.1e12, "6.1 TB"), (437e9, "437 GB"),
        ]
    )
    func bytes(number: Double, text: String) {
        #expect(SizeText.bytes(number) == text)
    }

    @Test(
        "Thousands stand apart",
        arguments: [(0.0, "0"), (999, "999"), (1000, "1,000"), (100_000_000, "100,000,000")]
    )
    func counts(number: Double, text: String) {
        #expect(SizeText.count(number) == text)
    }
}
