import PostgresStore
import Testing
import Wire

@Suite("Arrays in binary")
struct ArrayFormTests {
    private static func words(_ words: [UInt32]) -> [UInt8] {
        words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) } }
    }

    @Test("An array is its dimensions, its type, its count, and each element behind its length")
    func form() {
        var array = PostgresArray(.int4)
        array.append(Int32(7))
        array.append(Int32(-1))
        #expect(array.view.array == Self.words([1, 0, 23, 2, 1, 4, 7, 4, 0xFFFF_FFFF]))
        #expect(array.count == 2)
    }

    @Test("A NULL is marked at the head and has the length -1")
    func null() {
        var array = PostgresArray(.bytes)
        array.appendNull()
        array.append([0xAB, 0xCD])
        #expect(array.view.array == Self.words([1, 1, 17, 2, 1, 0xFFFF_FFFF, 2]) + [0xAB, 0xCD])
    }

    @Test("An array is used again as if it were new", arguments: PostgresElement.allCases)
    func usedAgain(element: PostgresElement) {
        var array = PostgresArray(element)
        let fresh = array.view.array
        #expect(fresh == Self.words([1, 0, element.rawValue, 0, 1]))
        for _ in 0..<1000 { array.appendNull() }
        array.removeAll()
        #expect(array.view.array == fresh)
        #expect(array.count == 0)
    }

    @Test("What is written is read")
    func read() {
        var array = PostgresArray(.text)
        array.append("a")
        array.appendNull()
        array.append("")
        array.append("ü")
        let elements = PostgresElements(array.view)
        #expect(elements?.count == 4)
        #expect(elements?.all == [Array("a".utf8), nil, [], Array("ü".utf8)])
    }

    @Test("An array that is cut short gives no element that is not whole", arguments: 0..<32)
    func cut(count: Int) {
        var array = PostgresArray(.int4)
        array.append(Int32(7))
        array.append(Int32(8))
        let bytes = Array(array.view.array[..<count])
        bytes.withByteView { view in
            let whole = PostgresElements(view)?.all ?? []
            #expect(whole.count == max(0, count - 20) / 8)
            #expect(whole.allSatisfy { $0?.count == 4 })
        }
    }

    @Test(
        "What is no array of one dimension is none",
        arguments: [
            [], [2, 0, 23, 1, 1, 1, 1, 4, 7], [1, 0, 23, 0x7FFF_FFFF, 1], [1, 0, 23, 0xFFFF_FFFF, 1],
            [0xFFFF_FFFF, 0, 23],
            [1, 0, 23],
        ]
    )
    func none(words: [UInt32]) {
        Self.words(words).withByteView { view in
            let isNone = PostgresElements(view) == nil
            #expect(isNone)
        }
    }
}
