internal import CSystemFaults

/// System calls and OpenSSL calls that fail on command for the threads that have joined. These threads have a clock
/// that only tests advance. Safe to use from several threads.
@safe
package final class SystemFaults: @unchecked Sendable {  // The C code has its own lock.
    /// The kinds of calls that may fail.
    package enum Step: Hashable, Sendable, CaseIterable {
        case accept, receive, send
        /// Adding, changing or removing the watch of a socket.
        case watch
        /// Waiting for events.
        case wait
        case close, shutdown
        /// Setting an option of a socket.
        case option
        /// Clearing a thread's wakeup.
        case clear
        /// Creating a socket, or an object for which threads wait.
        case open
        case bind, listen
        /// Starting a thread.
        case thread
        /// Linking a file to a new name.
        case link
        case tlsBegin, tlsHandshake, tlsRead, tlsWrite

        fileprivate var code: Int32 {
            let code =
                switch self {
                case .accept: WAKEGATE_FAULTS_ACCEPT
                case .receive: WAKEGATE_FAULTS_RECEIVE
                case .send: WAKEGATE_FAULTS_SEND
                case .watch: WAKEGATE_FAULTS_WATCH
                case .wait: WAKEGATE_FAULTS_WAIT
                case .close: WAKEGATE_FAULTS_CLOSE
                case .shutdown: WAKEGATE_FAULTS_SHUTDOWN
                case .option: WAKEGATE_FAULTS_OPTION
                case .clear: WAKEGATE_FAULTS_CLEAR
                case .open: WAKEGATE_FAULTS_OPEN
                case .bind: WAKEGATE_FAULTS_BIND
                case .listen: WAKEGATE_FAULTS_LISTEN
                case .thread: WAKEGATE_FAULTS_THREAD
                case .link: WAKEGATE_FAULTS_LINK
                case .tlsBegin: WAKEGATE_FAULTS_TLS_BEGIN
                case .tlsHandshake: WAKEGATE_FAULTS_TLS_HANDSHAKE
                case .tlsRead: WAKEGATE_FAULTS_TLS_READ
                case .tlsWrite: WAKEGATE_FAULTS_TLS_WRITE
                }
            return Int32(code)
        }
    }

    /// A value that makes a socket accept or return only one byte, instead of an error.
    package static let oneByte = Int32(WAKEGATE_FAULTS_ONE_BYTE)

    private let faults: OpaquePointer

    package init() {
        guard let faults = unsafe wakegate_faults_make() else { preconditionFailure("out of memory") }
        unsafe self.faults = faults
    }

    deinit { unsafe wakegate_faults_free(self.faults) }

    /// Starts to count the calling thread's calls, which may fail, and stops its monotonic clock. The thread must end
    /// or call `leave` before this object is freed.
    package func join() { unsafe wakegate_faults_join(self.faults) }

    /// Ends the faults of the calling thread.
    package static func leave() { wakegate_faults_join(nil) }

    /// Makes `times` calls of a step fail with an error, from call `number` on, counted from 0 from now on.
    package func fail(_ step: Step, number: Int, error: Int32, times: Int = 1) {
        unsafe wakegate_faults_plan(self.faults, step.code, Int64(number), Int64(times), error)
    }

    /// Ends all faults, and restarts the counts.
    package func failNothing() { unsafe wakegate_faults_plan(self.faults, 0, 0, 0, 0) }

    /// Limits sockets to `bytes` bytes per call, and to none in every other call.
    package func slowSockets(bytes: Int) { unsafe wakegate_faults_slow(self.faults, bytes) }

    /// Advances the monotonic clock of the threads that have joined.
    package func advance(milliseconds: Int64) { unsafe wakegate_faults_advance(self.faults, milliseconds) }

    /// Returns the number of calls of a step since the last plan.
    package func calls(_ step: Step) -> Int { unsafe Int(wakegate_faults_calls(self.faults, step.code)) }

    /// The number of calls that have failed since the last plan.
    package var met: Int { unsafe Int(wakegate_faults_met(self.faults)) }

    /// The number of descriptors that the threads have opened and not closed.
    package var openDescriptors: Int { unsafe Int(wakegate_faults_open(self.faults)) }

    /// The number of times that the threads closed a descriptor that was not open.
    package var wrongCloses: Int { unsafe Int(wakegate_faults_wrong_closes(self.faults)) }
}
