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

/// What decides over every push and every wake of a gateway, one batch after the other.
///
/// Verbs come in as values, many in a batch, with one call for all of them. What comes of them leaves as values as
/// well, by the engine's `GroupOutlet`, once it cannot be lost: each push has one `PushReply`, each request one
/// `Outcome`, and what is for one stream leaves in the order in which it came about. Wakes leave for streams that
/// subscribed through this engine.
///
/// There may be other engines on the same store, in other processes. So nobody who uses one may take it that a free
/// slot brings a wake, since another may have got it; that a wake ends with the stream that holds it, since its result
/// may come from anywhere; or that wakes of others are lost because this engine starts.
package protocol GatewayEngine: AnyObject {
    /// What whatever thread may call instead of `step`, one at a time, with a batch that is brief; nil when the engine
    /// is bound to its own thread.
    var briefStep: ((CommandBatch) -> Int64)? { get }

    /// Takes a batch, which is empty afterwards.
    ///
    /// - Returns: how many milliseconds may pass until the next step, if nothing arrives before.
    func step(_ batch: CommandBatch) -> Int64

    /// Makes the rest durable and lets it out; nothing is stepped afterwards.
    func finish()
}
