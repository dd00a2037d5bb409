import DeviceEngine
import Foundation

/// Runs the engine on a thread of its own.
final class EngineThread: Sendable {
    private let mailbox: EngineMailbox
    private let ended = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - mailbox: what the loops have for it; closing it ends the thread.
    ///   - loops: where it leaves what it has for the loops, by loop number.
    ///   - makeStore: makes the store, on the thread that will use it.
    init(
        configuration: EngineConfiguration,
        mailbox: EngineMailbox,
        loops: [LoopMailbox],
        makeStore: @escaping @Sendable () -> any DeviceStore
    ) {
        self.mailbox = mailbox
        let ended = self.ended
        let thread = Thread {
            let core = EngineCore(configuration: configuration, store: makeStore(), mailboxes: loops)
            var batch = CommandBatch()
            var wait: Int64 = 0
            while mailbox.take(into: &batch, waitingAtMost: wait) {
                wait = core.step(batch)
            }
            ended.signal()
        }
        thread.name = "engine"
        thread.start()
    }

    /// Ends the thread after what was left for it, and waits for that.
    func stop() {
        self.mailbox.close()
        self.ended.wait()
    }
}
