import APNSProtocol
import Bytes
import Edge
import EngineRoom
import Platform
import Testing
import WakeDispatch

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
        let outbox = EngineOutbox(self.mailbox)
        outbox.reject(.badTopic, APNsID(random: (1, 2))) { nil }
        #expect(self.taken() == nil)
        outbox.handOver()
        #expect(self.taken() == 0)
        outbox.handOver()
        #expect(self.taken() == nil)
    }

    @Test("Pushes count from the end of their turn until they are answered, and nothing else does")
    func pushes() {
        let outbox = EngineOutbox(self.mailbox)
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
}
