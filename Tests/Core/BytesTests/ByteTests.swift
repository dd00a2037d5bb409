import Testing
import WakeGateTestKit
import Wire

@Suite("Views of bytes", .timeLimit(.minutes(15)))
struct ByteViewTests {
    @Test("Views are equal exactly when count and every byte are", arguments: 0...40)
    func equality(count: Int) {
        let bytes = (0..<count).map { UInt8($0 * 5 + 1) }
        let copy = bytes
        bytes.withByteView { left in
            copy.withByteView { right in
                #expect(left == right)
                for end in 0..<count { #expect(!(left == right[0..<end])) }
            }
            for place in 0..<count {
                var changed = bytes
                changed[place] ^= 0x80
                changed.withByteView { right in #expect(!(left == right), "place \(place)") }
            }
        }
    }

    @Test("The first of some equal bytes is found, wherever it is", arguments: 0...24)
    func firstIndex(count: Int) {
        // Bytes that differ from 0x2F in one bit, and bytes that cause borrows and carries.
        let others: [UInt8] = [0x2E, 0x30, 0xAF, 0x00, 0x80, 0xFF]
        for place in 0...count {
            var bytes = (0..<count).map { others[$0 % others.count] }
            for index in place..<count { bytes[index] = index == place ? 0x2F : bytes[index] }
            if place + 3 < count { bytes[place + 3] = 0x2F }
            bytes.withByteView { #expect($0.firstIndex(of: 0x2F) == (place < count ? place : nil), "\(place)") }
        }
    }

    @Test("Decimal numbers are digits alone, up to the greatest UInt64")
    func decimal() {
        let cases: [(String, UInt64?)] = [
            ("0", 0), ("00", 0), ("007", 7), ("18446744073709551615", .max), ("18446744073709551616", nil),
            ("99999999999999999999", nil), ("", nil), ("-1", nil), ("+1", nil), ("1.0", nil), (" 1", nil), ("1 ", nil),
            ("1e3", nil), ("٣", nil),
        ]
        for (text, value) in cases { #expect(text.withByteView { $0.decimal } == value, "\(text)") }
    }

    @Test("Case is ignored for ASCII letters alone")
    func ignoringCase() {
        "Bearer-[".withByteView { view in
            #expect(view.equalsIgnoringCase("bEARER-["))
            #expect(!view.equalsIgnoringCase("bearer-{"))
            #expect(!view.equalsIgnoringCase("bearer"))
        }
    }

    @Test("A prefix, a suffix and the first place of a byte are found")
    func parts() {
        "apns-topic".withByteView { view in
            #expect(view.starts(with: "apns-"))
            #expect(view.starts(with: ""))
            #expect(!view.starts(with: "apns-topics"))
            #expect(view.dropFirst(5) == "topic")
            #expect(view.dropFirst(10).isEmpty)
            #expect(view.firstIndex(of: UInt8(ascii: "-")) == 4)
            #expect(view.firstIndex(of: UInt8(ascii: "x")) == nil)
        }
    }

    @Test("A word has its first byte lowest, at any place")
    func words() {
        (0..<20).map { UInt8($0) }.withByteView { view in
            #expect(view.word(at: 0) == 0x0706_0504_0302_0100)
            #expect(view.word(at: 12) == 0x1312_1110_0F0E_0D0C)
            #expect(view.halfWord(at: 0) == 0x0302_0100)
            #expect(view.halfWord(at: 16) == 0x1312_1110)
            #expect(view.load(UInt32.self, at: 16) == 0x1312_1110)
            #expect(view.slice(3, count: 4).array == [3, 4, 5, 6])
            #expect(view.slice(20, count: 0).isEmpty)
        }
    }

    @Test("Bytes outside the view are caught, not read")
    func outside() async {
        await #expect(processExitsWith: .failure) {
            [UInt8](repeating: 0, count: 20).withByteView { _ = $0.word(at: 13) }
        }
        await #expect(processExitsWith: .failure) {
            [UInt8](repeating: 0, count: 20).withByteView { _ = $0.halfWord(at: -1) }
        }
        await #expect(processExitsWith: .failure) {
            [UInt8](repeating: 0, count: 20).withByteView { _ = $0[20] }
        }
        await #expect(processExitsWith: .failure) {
            [UInt8](repeating: 0, count: 20).withByteView { _ = $0.load(UInt64.self, at: 13) }
        }
        await #expect(processExitsWith: .failure) {
            [UInt8](repeating: 0, count: 20).withByteView { _ = $0.load(UInt8.self, at: -1) }
        }
        await #expect(processExitsWith: .failure) {
            [UInt8](repeating: 0, count: 20).withByteView { _ = $0.slice(13, count: 8) }
        }
        await #expect(processExitsWith: .failure) {
            [UInt8](repeating: 0, count: 20).withByteView { _ = $0.slice(4, count: -1) }
        }
        await #expect(processExitsWith: .failure) {
            [UInt8](repeating: 0, count: 20).withByteView { _ = $0.slice(-1, count: 4) }
        }
    }
}

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

    @Test("Two views are appended in sequence, whatever their lengths", arguments: 0...20)
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
