internal import CSystemFaults

/// System calls, and calls of OpenSSL, that fail on command for the threads that have joined, and their clock, which
/// stands until a test has time pass. Safe to use from several threads.
@safe
package final class SystemFaults: @unchecked Sendable {  // The C side guards itself with a lock of its own.
    /// What may fail.
    package enum Step: Hashable, Sendable, CaseIterable {
        case accept, receive, send
        /// A socket is watched, watched for something else, or no more.
        case watch
        /// The wait for anything to happen.
        case wait
        case close, shutdown
        /// An option of a socket is set.
        case option
        /// A thread takes notice that it was woken.
        case clear
        /// A socket is made, or what threads wait at.
        case open
        case bind, listen
        /// A thread is started.
        case thread
        /// A file gets a name that nothing may have.
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

    /// In the place of an error: a socket takes or gives one byte alone.
    package static let oneByte = Int32(WAKEGATE_FAULTS_ONE_BYTE)

    private let faults: OpaquePointer

    package init() {
        guard let faults = unsafe wakegate_faults_make() else { preconditionFailure("out of memory") }
        unsafe self.faults = faults
    }

    deinit { unsafe wakegate_faults_free(self.faults) }

    /// From now on the calling thread's calls are counted and may fail, and its monotonic clock stands. It must have
    /// ended, or left, before this object goes.
    package func join() { unsafe wakegate_faults_join(self.faults) }

    /// The calling thread's calls go through again.
    package static func leave() { wakegate_faults_join(nil) }

    /// Call `number` of a step, counted from now and from 0, fails with an error, and so do those behind it until
    /// there were so many.
    package func fail(_ step: Step, number: Int, error: Int32, times: Int = 1) {
        unsafe wakegate_faults_plan(self.faults, step.code, Int64(number), Int64(times), error)
    }

    /// Fails nothing any more, and counts from now.
    package func failNothing() { unsafe wakegate_faults_plan(self.faults, 0, 0, 0, 0) }

    /// Sockets give and take so many bytes at most at a time, and every other time they take nothing.
    package func slowSockets(bytes: Int) { unsafe wakegate_faults_slow(self.faults, bytes) }

    /// Has time pass on the monotonic clock of the threads that have joined.
    package func advance(milliseconds: Int64) { unsafe wakegate_faults_advance(self.faults, milliseconds) }

    /// Calls of a step since the last plan.
    package func calls(_ step: Step) -> Int { unsafe Int(wakegate_faults_calls(self.faults, step.code)) }

    /// How many calls have failed since the last plan.
    package var met: Int { unsafe Int(wakegate_faults_met(self.faults)) }

    /// How many descriptors the threads have opened and not closed.
    package var openDescriptors: Int { unsafe Int(wakegate_faults_open(self.faults)) }

    /// How often they closed what was not open.
    package var wrongCloses: Int { unsafe Int(wakegate_faults_wrong_closes(self.faults)) }
}
