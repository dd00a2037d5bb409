import Gateway
import HTTPTransport
import Testing
import WakeGateTestKit

@Suite("The workers' streams of a loop", .timeLimit(.minutes(15)))
struct WorkerStreamsTests {
    private static let connection = ConnectionID(index: 1, generation: 1)

    private static func stream(_ number: Int32) -> StreamID { StreamID(connection: connection, number: number) }

    /// Returns the proof of a worker.
    private static func proof() throws -> ShownProof {
        let service = try OperationService()
        _ = service.serve(
            "GET /v1/topics/\(OperationService.topic)/wakes",
            on: .edge,
            token: try service.token(.worker, OperationService.topic)
        )
        return try #require(service.lastProof)
    }

    // MARK: Connections

    /// The expected state of a stream.
    private struct Model {
        var wakes = 0
        var isPaused = false
    }

    /// - `numbers`: the number of streams that a connection may have: so few that at times all have ended, or many.
    @Test(
        "Streams are found among others, with connections that reuse an index",
        arguments: UInt64(1)...4,
        [5, 100]
    )
    func model(seed: UInt64, numbers: Int) {
        var generator = SeededGenerator(seed: seed)
        var streams = WorkerStreams()
        var models: [StreamID: Model] = [:]
        var timesEmpty = 0
        for step in 0..<4000 {
            // Phases with more beginnings than ends alternate with the opposite.
            let isGrowing = step / 500 % 2 == 0
            let connection = ConnectionID(
                index: UInt32(generator.number(below: 3)),
                generation: UInt32(1 + generator.number(below: 40) / 39)
            )
            let stream = StreamID(connection: connection, number: Int32(1 + 2 * generator.number(below: numbers)))
            let held = models.filter { $0.key.connection == connection }.values.reduce(0) { $0 + $1.wakes }
            let deed = generator.number(below: 20)
            switch deed < 6 && !isGrowing ? 15 : deed {
            case 0..<6:
                streams.begin(stream, nil, now: 0)
                models = models.filter { (open, _) in
                    open.connection.index != connection.index || open.connection == connection
                }
                models[stream] = models[stream] ?? Model()
            case 6..<9:
                let isFirst = streams.give(to: stream)
                #expect(isFirst == models[stream].map { _ in held == 0 })
                models[stream]?.wakes += 1
            case 9..<12 where models[stream]?.wakes != 0:
                let isLast = streams.release(from: stream)
                #expect(isLast == models[stream].map { _ in held == 1 })
                models[stream]?.wakes -= 1
            case 12..<14:
                let queued = 10 + step % 2
                let isPaused = streams.wrote(to: stream, queued: queued, bytesMax: 10, now: 0)
                #expect(isPaused == (queued > 10 && models[stream]?.isPaused == false))
                if isPaused { models[stream]?.isPaused = true }
            case 14:
                let goesOn = streams.drained(stream)
                #expect(goesOn == (models[stream]?.isPaused == true))
                models[stream]?.isPaused = false
            case 15..<19:
                let wasOpen = streams.remove(stream)
                #expect(wasOpen == (models.removeValue(forKey: stream) != nil))
            case 19 where generator.once(in: 10):
                let ended = streams.removeAll(of: connection)
                let expected = models.keys.filter { $0.connection == connection }
                #expect(ended == expected.sorted { $0.number < $1.number })
                models = models.filter { $0.key.connection != connection }
            default: ()
            }
            #expect(streams.isOpen(stream) == (models[stream] != nil) && streams.isEmpty == models.isEmpty)
            timesEmpty += models.isEmpty ? 1 : 0
            let open = models.filter { $0.key.connection == connection }
            let pingSeconds = open.isEmpty ? nil : open.values.contains { $0.wakes > 0 } ? 5 : 30
            #expect(streams.load(of: connection)?.pingSeconds == pingSeconds)
            #expect(streams.load(of: connection)?.streams.count ?? 0 == open.count)
        }
        #expect((timesEmpty > 100) == (numbers == 5))
        for connection in Set(models.keys.map(\.connection)) {
            let open = models.filter { $0.key.connection == connection }
            #expect(streams.load(of: connection)?.wakes == open.values.reduce(0) { $0 + $1.wakes })
            #expect(streams.removeAll(of: connection) == open.keys.sorted { $0.number < $1.number })
        }
        #expect(streams.isEmpty && streams.silent(now: .max).isEmpty)
    }

    // MARK: Time and proofs

    @Test("A stream is silent once nothing was written to it for long")
    func silence() {
        var streams = WorkerStreams()
        streams.begin(Self.stream(1), nil, now: 1000)
        streams.begin(Self.stream(3), nil, now: 2000)
        let interval = WorkerStreams.keepAliveInterval
        #expect(streams.silent(now: 999 + interval).isEmpty)
        #expect(streams.silent(now: 1000 + interval) == [Self.stream(1)])
        _ = streams.wrote(to: Self.stream(1), queued: 0, bytesMax: 10, now: 3000)
        #expect(streams.silent(now: 2000 + interval) == [Self.stream(3)])
    }

    @Test("Streams whose credentials are no longer valid are found")
    func proofs() throws {
        var streams = WorkerStreams()
        streams.ask(Self.stream(1), try Self.proof())
        #expect(!streams.isOpen(Self.stream(1)) && streams.isEmpty)
        let proof = streams.takeAsked(Self.stream(1))
        streams.begin(Self.stream(1), proof, now: 0)
        let again = streams.takeAsked(Self.stream(1))
        #expect(proof != nil && again == nil)
        streams.begin(Self.stream(3), nil, now: 0)
        #expect(streams.withoutProof { $0 != nil } == [Self.stream(3)])
        #expect(streams.withoutProof { $0 == nil } == [Self.stream(1)])
        #expect(streams.withoutProof { _ in true }.isEmpty)
    }
}
