import LinuxConditions
import Testing

@Suite("Answers of rtnetlink become links and default routes")
struct RouteMessagesTests {
    private static let up: UInt32 = 0x1
    private static let loopback: UInt32 = 0x8
    private static let running: UInt32 = 0x40

    @Test(
        "A link can be used when it is up, has a carrier, and leads out of the machine",
        arguments: [
            (up | running, true), (up, false), (running, false), (up | running | loopback, false), (0, false),
        ]
    )
    func links(flags: UInt32, expected: Bool) {
        var reading = NetworkReading()
        #expect(RouteMessages.take(Self.link(index: 7, flags: flags), into: &reading) == .more)
        #expect(reading.usableLinks == (expected ? [7] : []))
    }

    @Test("Routes to everywhere count, over one link or several; others do not")
    func routes() {
        var reading = NetworkReading()
        let datagram =
            Self.route(destinationBits: 24, link: 1) + Self.route(link: 2) + Self.route(type: 7, link: 3)
            + Self.route(nextHops: [4, 5])
        #expect(RouteMessages.take(datagram[...], into: &reading) == .more)
        #expect(reading.defaultRouteLinks == [2, 4, 5])
    }

    @Test(
        "The network is available when a default route uses a working link",
        arguments: [
            ([2], [2], true), ([2], [3], false), ([], [2], false), ([2], [], false), ([1, 2], [2, 3], true),
        ] as [(Set<Int>, Set<Int>, Bool)]
    )
    func available(links: Set<Int>, routes: Set<Int>, expected: Bool) {
        #expect(NetworkReading(usableLinks: links, defaultRouteLinks: routes).isAvailable == expected)
    }

    @Test("A dump ends with its last message, and fails with an error or with nonsense")
    func ends() {
        var reading = NetworkReading()
        let last = Self.link(index: 1, flags: 0x41) + Self.message(3, [])
        #expect(RouteMessages.take(last, into: &reading) == .done)
        #expect(reading.usableLinks == [1])
        let zeros = [UInt8](repeating: 0, count: 12)
        let lengths: [[UInt8]] = [[255, 255, 255, 255] + zeros, [0, 0, 0, 0] + zeros]
        for datagram in lengths + [Self.message(2, [1, 0, 0, 0]), [1, 2, 3]] {
            #expect(RouteMessages.take(datagram[...], into: &reading) == .failed)
        }
    }

    @Test("A truncated message adds no false links or routes, and is not read beyond its end")
    func cut() {
        let whole = Self.link(index: 9, flags: Self.up | Self.running) + Self.route(nextHops: [4, 5])
        for length in 0..<whole.count {
            var reading = NetworkReading()
            _ = RouteMessages.take(whole.prefix(length), into: &reading)
            #expect(reading.usableLinks.isSubset(of: [9]))
            #expect(reading.defaultRouteLinks.isSubset(of: [4, 5]))
        }
    }

    /// Returns a message: `struct nlmsghdr`, then the body.
    private static func message(_ type: UInt16, _ body: [UInt8]) -> [UInt8] {
        self.bytes(UInt32(16 + body.count)) + self.bytes(type) + [0, 0] + [UInt8](repeating: 0, count: 8) + body
    }

    private static func link(index: UInt32, flags: UInt32) -> ArraySlice<UInt8> {
        self.message(16, [0, 0, 1, 0] + self.bytes(index) + self.bytes(flags) + [0, 0, 0, 0])[...]
    }

    private static func route(
        destinationBits: UInt8 = 0,
        type: UInt8 = 1,
        link: UInt32? = nil,
        nextHops: [UInt32] = []
    ) -> [UInt8] {
        var body: [UInt8] = [2, destinationBits, 0, 0, 254, 3, 0, type, 0, 0, 0, 0]
        if let link { body += self.attribute(4, self.bytes(link)) }
        if !nextHops.isEmpty {
            body += self.attribute(9, nextHops.flatMap { self.bytes(UInt16(8)) + [0, 0] + self.bytes($0) })
        }
        return self.message(24, body)
    }

    private static func attribute(_ kind: UInt16, _ value: [UInt8]) -> [UInt8] {
        self.bytes(UInt16(4 + value.count)) + self.bytes(kind) + value
    }

    private static func bytes(_ number: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
        (0..<(number.bitWidth / 8)).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    }
}
