internal import CSystemFaults

/// Planned failures of system calls and OpenSSL calls on the threads that have joined. For these threads, only the test
/// advances the monotonic clock. May be used from several threads.
@safe
package final class SystemFaults: @unchecked Sendable {  // The C code has its own lock.
    /// The kinds of calls that may fail, in the order of the C enumeration.
    package enum Step: Int32, Sendable, CaseIterable {
        case accept, receive, send
        /// Adding, changing or removing the watch of a descriptor (`epoll_ctl`).
        case watch
        /// Waiting for events (`epoll_wait`, `poll`).
        case wait
        case close, shutdown
        /// Setting an option of a socket.
        case option
        /// Clearing a thread's wakeup (`eventfd_read`).
        case clear
        /// Creating a descriptor (`socket`, `eventfd`, `epoll_create1`).
        case open
        case bind, listen
        /// Starting a thread.
        case thread
        /// Giving a file a new name (`link`, `renameat2`).
        case link
        /// Syncing a file or a folder (`fsync`).
        case sync
        case tlsBegin, tlsHandshake, tlsRead, tlsWrite
    }

    /// A value to use instead of an error number. It makes the call send or receive only one byte.
    package static let oneByte = Int32(WAKEGATE_FAULTS_ONE_BYTE)

    private let faults: OpaquePointer

    package init() {
        precondition(Step.allCases.count == Int(WAKEGATE_FAULTS_STEPS), "each kind has a case")
        guard let faults = unsafe wakegate_faults_make() else { preconditionFailure("out of memory") }
        unsafe self.faults = faults
    }

    deinit { unsafe wakegate_faults_free(self.faults) }

    /// Makes the calling thread join: its calls are counted and may fail, and its monotonic clock stands still. The
    /// thread must end or call `leave` before this object is freed.
    package func join() { unsafe wakegate_faults_join(self.faults) }

    /// Makes the calling thread leave: its calls are no longer counted and do not fail.
    package static func leave() { wakegate_faults_join(nil) }

    /// Restarts the counts, and makes calls `number` to `number + times - 1` of a step fail with `error`. The next call
    /// has the number 0. This plan replaces the previous plan.
    package func fail(_ step: Step, number: Int, error: Int32, times: Int = 1) {
        unsafe wakegate_faults_plan(self.faults, step.rawValue, Int64(number), Int64(times), error)
    }

    /// Removes the plan, and restarts the counts. A limit of `limitSocketTransfers` stays.
    package func reset() { unsafe wakegate_faults_plan(self.faults, 0, 0, 0, 0) }

    /// Limits sockets to `bytes` bytes per call, and makes every other send fail with EAGAIN. 0 removes the limit.
    package func limitSocketTransfers(bytes: Int) { unsafe wakegate_faults_slow(self.faults, bytes) }

    /// Advances the monotonic clock of the threads that have joined.
    package func advance(milliseconds: Int64) { unsafe wakegate_faults_advance(self.faults, milliseconds) }

    /// Returns the number of calls of a step since the counts were restarted.
    package func calls(_ step: Step) -> Int { unsafe Int(wakegate_faults_calls(self.faults, step.rawValue)) }

    /// The number of calls that the plan has made fail since it was set.
    package var failureCount: Int { unsafe Int(wakegate_faults_met(self.faults)) }

    /// The number of descriptors that joined threads have opened and not closed.
    package var openDescriptors: Int { unsafe Int(wakegate_faults_open(self.faults)) }

    /// The number of times that joined threads closed a descriptor that was not open.
    package var invalidCloseCount: Int { unsafe Int(wakegate_faults_wrong_closes(self.faults)) }
}
