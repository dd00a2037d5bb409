package import Engine
package import Platform
import Synchronization

/// Runs an engine on a separate thread. While that thread sleeps, other threads may perform brief steps, if the engine
/// allows it.
package final class EngineThread: Sendable {
    private let mailbox: Mailbox<CommandBatch>
    private let thread: NamedThread

    /// Starts the thread and waits until the engine is created.
    ///
    /// - `mailbox`: receives the commands of the loops. Closing it ends the thread.
    /// - `pulse`: shows a watchdog in each turn that the thread is alive.
    /// - `make`: creates the engine on the thread. The engine must wake `mailbox` when it has work that is not in a
    ///   batch.
    /// - Throws: `StoreError` if `make` throws, or if the thread cannot be created.
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

    /// Lets the thread process the remaining commands, and waits until it has ended.
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

/// The component that decides about every push and every wake of a gateway, batch by batch.
///
/// Commands arrive in batches. Effects leave through the engine's `GroupOutput` when they are durable. Each push gets
/// one `PushReply`, and each request gets one `Outcome`. The effects for one stream leave in order. Wakes go to streams
/// that subscribed through this engine.
///
/// Other processes may have engines on the same store, so callers must not assume the following:
/// - a free slot yields a wake, because another engine may get the wake;
/// - a wake ends with its stream, because its result may arrive at any gateway;
/// - the start of this engine loses the wakes of other engines.
package protocol GatewayEngine: AnyObject {
    /// A function that any thread may call with a brief batch instead of `step`. Only one thread may call it at a time.
    /// Nil if only the engine's thread may perform steps.
    var briefStep: ((CommandBatch) -> Int64)? { get }

    /// Processes a batch and empties it.
    ///
    /// - Returns: the number of milliseconds until the next step, if nothing arrives earlier.
    func step(_ batch: CommandBatch) -> Int64

    /// Makes the remaining changes durable and releases them. No step may follow.
    func finish()
}
