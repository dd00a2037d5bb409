import Testing
import WakeGateTestKit
import Wire

@Suite("Buffers of bytes")
struct ByteBufferTests {
    @Test("Bytes come out in the order they went in, through growth and consumption")
    func order() {
        var generator = SeededGenerator(seed: 21)
        var buffer = ByteBuffer()
        var model: [UInt8] = []
        var largest = 0
        for step in 0..<3000 {
            let count = Int.random(in: 0..<40, using: &generator)
            if Bool.random(using: &generator) || step % 100 < 20 {
                let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
                buffer.append(bytes)
                model += bytes
            } else {
                let taken = min(count, model.count)
                buffer.consume(taken)
                model.removeFirst(taken)
            }
            largest = max(largest, model.count)
            let view = buffer.view
            #expect(view.array == model, "step \(step)")
        }
        #expect(largest > 300, "the buffer never had to grow")
    }

    @Test(
        "Numbers are written in decimal",
        arguments: [0, 7, -1, 10, 99, 100, 1_234_567_890_123, Int64.max, Int64.min] as [Int64]
    )
    func decimal(value: Int64) {
        var buffer = ByteBuffer()
        buffer.appendDecimal(value)
        let text = buffer.view.string
        #expect(text == String(value))
    }

    @Test("Words are appended with their lowest byte first")
    func words() {
        var buffer = ByteBuffer()
        buffer.append(UInt8(0xAA))
        buffer.append(word: 0x0706_0504_0302_0100)
        buffer.append(halfWord: 0x0B0A_0908)
        let bytes = buffer.view.array
        #expect(bytes == [0xAA] + (0..<12).map { UInt8($0) })
    }

    @Test("Two views are appended one right after the other, whatever their counts", arguments: 0...20)
    func pairs(count: Int) {
        for other in 0...40 {
            let first = (0..<count).map { UInt8($0) }
            let second = (0..<other).map { UInt8(100 + $0) }
            var buffer = ByteBuffer()
            buffer.append(UInt8(0xAA))
            first.withByteView { first in second.withByteView { buffer.append(first, $0) } }
            buffer.append(UInt8(0xBB))
            let bytes = buffer.view.array
            #expect(bytes == [0xAA] + first + second + [0xBB])
        }
    }

    @Test("An emptied buffer is empty, a freed one can be filled again")
    func empty() {
        var buffer = ByteBuffer()
        let isEmptyAtFirst = buffer.isEmpty
        buffer.append("text")
        let isEmptyWhenFilled = buffer.isEmpty
        buffer.removeAll()
        let isEmptyAgain = buffer.isEmpty && buffer.view.isEmpty
        buffer.free()
        buffer.append("again")
        let text = buffer.view.string
        #expect(isEmptyAtFirst && !isEmptyWhenFilled && isEmptyAgain)
        #expect(text == "again")
    }
}
