internal import CThreads
internal import Glibc
private import Synchronization

// The one file that knows the system's threads.

/// A thread of this process, shown by the system under a name.
///
/// Nobody need keep it: it runs on when this is gone.
package final class NamedThread: Sendable {
    /// Which signals of the process the thread may be given.
    package enum Signals: Sendable {
        /// The signals that the thread takes which starts it.
        case inherited
        /// No signal: signals are for the threads that expect them.
        case blocked
    }

    private let handle: pthread_t
    private let isJoined = Atomic(false)

    /// Starts a thread that ends when `run` returns.
    ///
    /// - Parameters:
    ///   - name: what the system shows; at most 15 bytes of it are kept.
    ///   - signals: which signals it may be given.
    ///   - run: called once, on the thread.
    /// - Throws: `ThreadFailure` when the system has no room for one more.
    @discardableResult
    package init(
        _ name: String,
        signals: Signals = .inherited,
        _ run: @escaping @Sendable () -> Void
    ) throws(ThreadFailure) {
        let body = unsafe Unmanaged.passRetained(ThreadBody(name: name, signals: signals, run: run))
        var handle = pthread_t()
        let error = unsafe pthread_create(&handle, nil, runThreadBody, body.toOpaque())
        guard error == 0 else {
            unsafe body.release()
            throw ThreadFailure(cause: SystemError(error).message)
        }
        self.handle = handle
    }

    deinit {
        if !self.isJoined.load(ordering: .relaxed) { pthread_detach(self.handle) }
    }

    /// Has the calling thread take these signals from now on.
    static func unblock(_ signals: [Int32]) {
        var unblocked = sigset_t()
        unsafe sigemptyset(&unblocked)
        for signal in signals { unsafe sigaddset(&unblocked, signal) }
        unsafe pthread_sigmask(SIG_UNBLOCK, &unblocked, nil)
    }

    /// Waits for the end of the thread; by one caller, once.
    package func join() {
        let wasJoined = self.isJoined.exchange(true, ordering: .relaxed)
        precondition(!wasJoined, "a thread was waited for twice")
        _ = pthread_join(self.handle, nil)
    }
}

/// Why a thread could not be started.
package struct ThreadFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The cause in the system's words, such as `Resource temporarily unavailable`.
    package let cause: String

    /// A sentence for whoever runs the process, with what to do about it.
    package var message: String {
        "A thread cannot be started: \(self.cause). Raise the limit of threads (ulimit -u, or TasksMax= of the unit)."
    }

    package var description: String { self.message }
}

/// What a new thread begins with.
private final class ThreadBody: Sendable {
    let name: String
    let signals: NamedThread.Signals
    let run: @Sendable () -> Void

    init(name: String, signals: NamedThread.Signals, run: @escaping @Sendable () -> Void) {
        self.name = name
        self.signals = signals
        self.run = run
    }

    func begin() {
        unsafe wakegate_name_thread(self.name)
        if self.signals == .blocked {
            var all = sigset_t()
            unsafe sigfillset(&all)
            unsafe pthread_sigmask(SIG_BLOCK, &all, nil)
        }
        self.run()
    }
}

private func runThreadBody(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    unsafe Unmanaged<ThreadBody>.fromOpaque(context.unsafelyUnwrapped).takeRetainedValue().begin()
    return nil
}

/// Turns signals into bytes on a pipe, for programs that wait in one place for everything.
package enum SignalPipe {
    // Written once before any handler is installed, and only read by handlers.
    private nonisolated(unsafe) static var writeEnd: Int32 = -1

    /// A byte that is no signal.
    package static let none: Int32 = 0

    /// Catches `signals` from now on and returns the descriptor on which each is one byte, its number.
    package static func open(_ signals: [Int32]) -> Int32? {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return nil }
        for end in ends {
            _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        unsafe self.writeEnd = ends[1]
        for signal in signals {
            _ = Glibc.signal(signal) { number in
                let saved = errno
                var byte = UInt8(truncatingIfNeeded: number)
                _ = unsafe write(SignalPipe.writeEnd, &byte, 1)
                errno = saved
            }
        }
        // A parent may have left them blocked, as threads of libdispatch do, and then they would never arrive.
        NamedThread.unblock(signals)
        return ends[0]
    }

    /// Ends a wait for the descriptor from any thread.
    package static func wake() {
        var byte = UInt8(self.none)
        // A pipe that is full ends the wait, too.
        _ = unsafe write(self.writeEnd, &byte, 1)
    }

    /// The signals that came since the last call.
    package static func read(_ descriptor: Int32) -> [Int32] {
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = (try? Descriptor.read(descriptor, into: &bytes)) ?? 0
        return bytes.prefix(count).map { Int32($0) }
    }
}
