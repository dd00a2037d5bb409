import Engine
import Gateway
import Testing
import Wire

@Suite("Lists of topics", .timeLimit(.minutes(15)))
struct TopicListTests {
    @Test("Concurrent long lists are written one per step, in order, and a push waits only for one")
    func crowd() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1) { $0.register(1, 1) }
        rig.step { requests in
            for request in 2...5 { requests.topics(request) }
            requests.push(6, 1)
        }
        try rig.answers(6...6)
        for request in 2...5 {
            try rig.answers(request...request)
            #expect(request == 5 || rig.answer(request + 1) == nil)
            rig.step()
        }
        for request in 2...6 { #expect(rig.told.answerCount(request) == 1) }
    }

    @Test("While one waits for a commit the next is not written, and no step is due for it")
    func slowCommit() throws {
        let rig = try GatewayEngineRig()
        rig.gate.close()
        rig.step { $0.register(1, 1) }
        try rig.waitForCommit()
        let wait = rig.step { requests in for request in 2...4 { requests.topics(request) } }
        #expect(wait > 0)
        rig.gate.open()
        try rig.answers(2...2)
        #expect(rig.answer(3) == nil)
        rig.step()
        rig.step()
        try rig.answers(3...4)
    }
}

@Suite("Names of streams")
struct StreamNamesTests {
    private static let names = StreamNames(key: HashKey((1, 2)))

    private static let streams = [
        LoopStream(loop: 0, connectionIndex: 0, connectionGeneration: 0, number: 0),
        LoopStream(loop: 1, connectionIndex: 2, connectionGeneration: 3, number: 4),
        LoopStream(loop: .max, connectionIndex: .max, connectionGeneration: .max, number: .max),
    ]

    @Test("A stream's name consists of four numbers and a fifth, and leads back to the stream", arguments: Self.streams)
    func found(_ stream: LoopStream) {
        let name = Self.names.name(of: stream)
        let place = "\(stream.loop)-\(stream.connectionIndex)-\(stream.connectionGeneration)-\(stream.number)-"
        #expect(name.hasPrefix(place))
        #expect(UInt64(name.dropFirst(place.count)) != nil)
        #expect(Self.names.stream(name) == stream)
    }

    @Test("Another key yields another name")
    func otherKey() {
        let others = StreamNames(key: HashKey((1, 3)))
        for stream in Self.streams {
            #expect(others.stream(Self.names.name(of: stream)) == nil)
            #expect(others.name(of: stream) != Self.names.name(of: stream))
        }
    }

    @Test("A name with a changed number has no stream")
    func changed() {
        let numbers = Self.names.name(of: Self.streams[1]).split(separator: "-").compactMap { UInt64($0) }
        #expect(numbers.count == 5)
        for place in numbers.indices {
            var other = numbers
            other[place] ^= 1
            #expect(Self.names.stream(other.map { "\($0)" }.joined(separator: "-")) == nil)
        }
    }

    @Test(
        "A malformed name has no stream",
        arguments: ["", "-", "----", "1-2-3-4", "1-2-3-4-", "1-2-3-4-5-6", "a-2-3-4-5", "65536-2-3-4-5", "1-2-3-4--5"]
    )
    func other(_ name: String) {
        #expect(Self.names.stream(name) == nil)
    }
}
