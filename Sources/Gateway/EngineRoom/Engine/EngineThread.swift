package import Access
package import Bytes
package import DeviceEngine
package import Platform
import Synchronization

/// Runs the engine on a thread of its own.
package final class EngineThread: Sendable {
    private let mailbox: Mailbox<CommandBatch>
    private let thread: NamedThread

    /// Waits until the engine has everything that was kept.
    ///
    /// - `historyKey`: the key of the history that hears what happens.
    /// - `workers`: whether workers are asked who they are.
    /// - `jumpWatch`: how far the wall clock may have gone across a boot, and who hears that it went farther.
    /// - `wakeBytesPerStreamMax`: the bytes of payloads that a worker's stream may hold unanswered.
    /// - `mailbox`: what the loops have for it; closing it ends the thread.
    /// - `outlet`: where it leaves what it has for the loops and the history.
    /// - `meter`: what other parts of the gateway have counted of their bounds.
    /// - `live`: takes a sample a second.
    /// - `limitWatch`: tells of bounds that were met.
    /// - `openStore`: opens the store; nil to keep nothing.
    /// - `onLossAccepted`: called when the store lacks what was committed, and the start goes on without it.
    /// - `onFailure`: called once, when nothing can be stored any more.
    /// - `pulse`: beats in each of the thread's turns.
    /// - Throws: `StoreError` when what was kept cannot be read, or nothing can be stored.
    package init(
        configuration: EngineConfiguration,
        historyKey: HashKey,
        workers: WorkersAsked,
        jumpWatch: ClockJumpWatch,
        wakeBytesPerStreamMax: Int,
        mailbox: Mailbox<CommandBatch>,
        outlet: GroupOutlet,
        meter: LimitMeter,
        live: LiveDesk,
        limitWatch: LimitWatch,
        openStore: @escaping @Sendable () throws(StoreError) -> (any RecordStore)?,
        onLossAccepted: @escaping @Sendable (StoreLoss) -> Void,
        onFailure: @escaping @Sendable (StoreError) -> Void,
        pulse: Pulse
    ) throws(StoreError) {
        self.mailbox = mailbox
        let begun = Latch()
        let error = SharedError()
        let run: @Sendable () -> Void = {
            do throws(StoreError) {
                let core = try EngineCore(
                    configuration: configuration,
                    historyKey: historyKey,
                    workers: workers,
                    jumpWatch: jumpWatch,
                    wakeBytesPerStreamMax: wakeBytesPerStreamMax,
                    store: try openStore(),
                    outlet: outlet,
                    meter: meter,
                    live: live,
                    limitWatch: limitWatch,
                    ring: { mailbox.ring() },
                    onLossAccepted: onLossAccepted,
                    onFailure: onFailure
                )
                begun.open()
                Self.run(core, mailbox, pulse)
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

    private static func run(_ core: EngineCore, _ mailbox: Mailbox<CommandBatch>, _ pulse: Pulse) {
        var batch = CommandBatch()
        var wait: Int64 = 0
        while mailbox.take(into: &batch, waitingAtMost: wait) {
            wait = core.step(batch)
            pulse.beat()
        }
        core.finish()
    }

    private final class SharedError: Sendable {
        let value = Mutex<StoreError?>(nil)
    }
}
