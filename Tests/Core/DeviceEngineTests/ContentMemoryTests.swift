import Engine
import Testing
import WakeGateTestKit
import Wire

@Suite("The memory of pushes", .timeLimit(.minutes(15)))
struct ContentMemoryTests {
    private static func topic(_ number: UInt32) -> TopicIndex { TopicIndex(rawValue: number) }

    /// A content whose payload has so many bytes.
    private static func content(_ payloadBytes: Int) -> PushContent {
        [UInt8](repeating: 0x20, count: payloadBytes).withByteView {
            PushContent(apnsID: EngineRig.apnsID(1), collapseID: ByteView(), payload: $0)
        }
    }

    @Test("Content counts from when it is held until it is let go of, in its topic and in all")
    func counts() {
        var memory = ContentMemory()
        memory.grow(topicCount: 1)
        let first = Self.content(10)
        memory.hold(first, Self.topic(0))
        let one = memory.bytes
        #expect(one > 10)
        memory.grow(topicCount: 2)
        let second = Self.content(30)
        memory.hold(second, Self.topic(1))
        #expect(memory.bytes == 2 * one + 20)
        func isFull(_ topic: UInt32, _ bytesMax: Int) -> Bool {
            memory.refusal(0, Self.topic(topic), bytesMax: .max, bytesPerTopicMax: bytesMax) != nil
        }
        #expect(!isFull(0, one) && isFull(0, one - 1) && !isFull(1, one + 20) && isFull(1, one + 19))
        memory.letGo(first, Self.topic(0))
        #expect(memory.bytes == one + 20)
        #expect(!isFull(0, 0) && isFull(1, one + 19))
        memory.letGo(second, Self.topic(1))
        #expect(memory.bytes == 0)
    }

    /// How many bytes come, of topic 1 where 0 and 1 hold 100 each or of one that is not known, and what they meet.
    static let refusals: [(bytes: Int, isKnown: Bool, bytesMax: Int, bytesPerTopicMax: Int, refusal: Refusal?)] = [
        (50, true, 250, 150, nil),
        (51, true, 250, 151, .noMemory),
        (51, true, 251, 150, .noMemoryForTopic),
        // Who takes more than a share of it is told so, also when others have taken the rest.
        (51, true, 250, 150, .noMemoryForTopic),
        (50, false, 250, 50, nil),
        (51, false, 250, 51, .noMemory),
        (51, false, 251, 50, .noMemoryForTopic),
        (0, true, 0, 0, .noMemoryForTopic),
        (0, true, 0, .max, .noMemory),
        (.max / 2, true, .max, .max, nil),
    ]

    @Test("There is room up to both bounds, and none beyond", arguments: Self.refusals.indices)
    func refusal(index: Int) {
        let row = Self.refusals[index]
        var memory = ContentMemory()
        memory.grow(topicCount: 2)
        let empty = Self.content(0)
        memory.hold(empty, Self.topic(0))
        let contents = [Self.content(100 - memory.bytes), Self.content(100 - memory.bytes)]
        memory.letGo(empty, Self.topic(0))
        for (number, content) in contents.enumerated() { memory.hold(content, Self.topic(UInt32(number))) }
        #expect(memory.bytes == 200)
        let refusal = memory.refusal(
            row.bytes,
            row.isKnown ? Self.topic(1) : nil,
            bytesMax: row.bytesMax,
            bytesPerTopicMax: row.bytesPerTopicMax
        )
        #expect(refusal == row.refusal)
        for (number, content) in contents.enumerated() { memory.letGo(content, Self.topic(UInt32(number))) }
    }
}
