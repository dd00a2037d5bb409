package import Engine
package import Platform
import Synchronization

/// Runs an engine on a thread of its own. An engine that steps on any thread is lent to those who have little for it
/// while its own thread sleeps.
package final class EngineThread: Sendable {
    private let mailbox: Mailbox<CommandBatch>
    private let thread: NamedThread

    /// Waits until the engine is made.
    ///
    /// - `mailbox`: what the loops have for it; closing it ends the thread.
    /// - `pulse`: beats in each of the thread's turns.
    /// - `make`: makes the engine, on the thread; the engine is to ring `mailbox` when it has something to do that no
    ///   batch brings.
    /// - Throws: `StoreError` when `make` does, or there is no room for the thread.
    package init(
        mailbox: Mailbox<CommandBatch>,
        pulse: Pulse,
        make: @escaping @Sendable () throws(StoreError) -> any GatewayEngine
    ) throws(StoreError) {
        self.mailbox = mailbox
        let begun = Latch()
        let error = SharedError()
        let run: @Sendable () -> Void = {
            do throws(StoreError) {
                let engine = try make()
                begun.open()
                Self.run(engine, mailbox, pulse)
            } catch let found {
                error.value.withLock { $0 = found }
                begun.open()
            }
        }
        do throws(ThreadFailure) { self.thread = try NamedThread("engine", run) } catch {
            throw StoreError(message: error.message)
        }
        begun.wait()
        if let found = error.value.withLock({ $0 }) { throw found }
    }

    /// Ends the thread after what was left for it, and waits for that.
    package func stop() {
        self.mailbox.close()
        self.thread.join()
    }

    private static func run(_ engine: any GatewayEngine, _ mailbox: Mailbox<CommandBatch>, _ pulse: Pulse) {
        var batch = CommandBatch()
        var wait: Int64 = 0
        mailbox.lend(engine.briefStep)
        while mailbox.take(into: &batch, waitingAtMost: wait) {
            wait = engine.step(batch)
            pulse.beat()
        }
        mailbox.lend(nil)
        engine.finish()
    }

    private final class SharedError: Sendable {
        let value = Mutex<StoreError?>(nil)
    }
}
