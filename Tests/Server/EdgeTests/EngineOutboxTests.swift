import Engine
import Gateway
import Platform
import Synchronization
import Testing
import Wire

@Suite("What a loop has for the engine", .timeLimit(.minutes(15)))
struct EngineOutboxTests {
    private let mailbox = Mailbox<CommandBatch>()

    /// How many answers are due to what was handed over since the last call; nil when nothing was.
    private func taken() -> Int? {
        var batch = CommandBatch()
        _ = self.mailbox.take(into: &batch, waitingAtMost: 0)
        return batch.isEmpty ? nil : batch.answersDue
    }

    private func append(_ outbox: EngineOutbox) {
        let stream = LoopStream(loop: 0, connectionIndex: 0, connectionGeneration: 1, number: 1)
        let push = PushCommand(
            reply: .stream(stream),
            token: DeviceToken(),
            apnsID: APNsID(random: (1, 2)),
            isNamedByClient: false,
            expiration: 0,
            priority: 10,
            wakes: true,
            isDryRun: false,
            topicCount: 0,
            collapseIDCount: 0,
            payloadCount: 0,
            traceCount: 0
        )
        outbox.append(push, topic: ByteView(), collapseID: ByteView(), payload: ByteView(), trace: ByteView())
    }

    @Test("It leaves at the end of the turn, and not before")
    func turn() {
        let outbox = EngineOutbox(self.mailbox, room: PushRoom(most: 512))
        outbox.reject(.badTopic, APNsID(random: (1, 2))) { nil }
        #expect(self.taken() == nil)
        outbox.handOver()
        #expect(self.taken() == 0)
        outbox.handOver()
        #expect(self.taken() == nil)
    }

    @Test("Pushes count from the end of their turn until they are answered, and nothing else does")
    func pushes() {
        let outbox = EngineOutbox(self.mailbox, room: PushRoom(most: 512))
        for _ in 0..<3 { self.append(outbox) }
        outbox.append(.workersAsked)
        #expect(outbox.pushesAtEngine == 0)
        outbox.handOver()
        #expect(outbox.pushesAtEngine == 3 && self.taken() == 3)
        outbox.pushAnswered()
        self.append(outbox)
        outbox.handOver()
        #expect(outbox.pushesAtEngine == 3 && self.taken() == 1)
    }

    @Test("What takes the engine little is stepped by the loop while the engine's thread sleeps, and the rest is left")
    func stepping() throws {
        let steps = Mutex<[Int]>([])
        let mailbox = self.mailbox
        let thread = try NamedThread("engine") {
            var batch = CommandBatch()
            mailbox.lend { batch in
                steps.withLock { $0.append(batch.answersDue) }
                batch.removeAll()
                return 600_000
            }
            while mailbox.take(into: &batch, waitingAtMost: 600_000) { batch.removeAll() }
            mailbox.lend(nil)
        }
        let outbox = EngineOutbox(mailbox, room: PushRoom(most: 512))
        var count = 0
        func isStepped(_ pushes: Int, with commands: EngineCommand...) -> Bool {
            let before = steps.withLock { $0.count }
            for _ in 0..<pushes { self.append(outbox) }
            for command in commands { outbox.append(command) }
            var isHere = false
            outbox.handOver {
                $0()
                isHere = true
            }
            count += pushes
            return isHere && steps.withLock { $0.dropFirst(before) } == [pushes]
        }
        // The thread is at work now and then, and does what is left for it.
        while !isStepped(3) {}
        while !isStepped(256) {}
        while !isStepped(1, with: .rejected(reason: 0, topic: [])) {}
        #expect(!isStepped(257), "that many are the thread's")
        #expect(!isStepped(1, with: .workersAsked), "and what may take longer")
        #expect(outbox.pushesAtEngine == count)
        mailbox.close()
        thread.join()
    }
}
