import CommandLineTool
import Testing

@Suite("The commands' output becomes lines with the wake's id")
struct OutputLinesTests {
    @Test(
        "Lines come out whole however they come in",
        arguments: [["a\nbc\n\nd"], ["a", "\n", "b", "c\n", "\nd"], ["a\nb", "c\n\nd"]]
    )
    func lines(parts: [String]) {
        var lines = OutputLines(prefix: "w1")
        let found = parts.flatMap { lines.received(Array($0.utf8)[...]) }
        #expect(found.map { String(decoding: $0, as: UTF8.self) } == ["w1 a\n", "w1 bc\n", "w1 \n"])
        #expect(lines.ended().map { String(decoding: $0, as: UTF8.self) } == "w1 d\n")
        #expect(lines.ended() == nil)
    }

    @Test("A line without an end is broken every 4096 bytes, and loses nothing", arguments: [4096, 4097, 8192, 10_000])
    func long(count: Int) {
        for step in [1000, 4096, 65_536] {
            var lines = OutputLines(prefix: "w")
            let input = (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) } + [UInt8(ascii: "\n")]
            var found: [[UInt8]] = []
            for start in stride(from: 0, to: input.count, by: step) {
                found += lines.received(input[start..<min(input.count, start + step)])
            }
            #expect(lines.ended() == nil)
            #expect(found.count == (count + 4095) / 4096)
            #expect(found.allSatisfy { $0.count <= 4096 + 3 && $0.starts(with: "w ".utf8) })
            #expect(found.flatMap { $0.dropFirst(2).dropLast() } == Array(input.dropLast()))
        }
    }

    @Test("More lines than somebody can read are dropped and counted, and later ones come through")
    func rate() {
        var queue = OutputQueue()
        for _ in 0..<7000 { queue.append(Array("x\n".utf8), now: 0) }
        #expect(queue.next(1 << 20).count == 2 * 5000)
        queue.append(Array("y\n".utf8), now: 1000)
        let text = String(decoding: queue.next(1 << 20).dropFirst(2 * 5000), as: UTF8.self)
        #expect(text.hasPrefix("wakegate: 2000 lines"))
        #expect(text.hasSuffix("fast\ny\n"))
        for _ in 0..<999 { queue.append(Array("z\n".utf8), now: 1000) }
        queue.append(Array("over\n".utf8), now: 1000)
        #expect(String(decoding: queue.next(1 << 20).suffix(2), as: UTF8.self) == "z\n")
    }

    @Test("A reader that does not read costs at most a megabyte")
    func room() {
        var queue = OutputQueue()
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 4000)
        for number in 0..<10_000 { queue.append(line, now: Int64(number) * 1000) }
        for _ in 0..<10_000 { queue.appendOwn("us") }
        #expect(queue.next(.max).count <= 1 << 20)
        #expect(queue.next(.max).count > (1 << 20) - 4000)
        queue.wrote(queue.next(.max).count)
        #expect(queue.isEmpty)
        queue.append(Array("again\n".utf8), now: 100_000_000)
        #expect(String(decoding: queue.next(100), as: UTF8.self).contains("lines of the commands' output were dropped"))
    }

    @Test("What was written does not come again")
    func written() {
        var queue = OutputQueue()
        for number in 0..<100 { queue.append(Array("\(number)\n".utf8), now: 0) }
        var found: [UInt8] = []
        while !queue.isEmpty {
            let part = queue.next(7)
            found += part
            queue.wrote(part.count)
        }
        #expect(found == (0..<100).flatMap { Array("\($0)\n".utf8) })
    }
}
