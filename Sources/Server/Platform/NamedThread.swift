internal import CThreads
internal import Glibc
private import Synchronization

// The only file that uses the system's threads.

/// A thread of this process with a name that the system shows.
///
/// The thread continues to run after this object is gone.
package final class NamedThread: Sendable {
    /// The signals sent to the process that the system may deliver to the thread.
    package enum Signals: Sendable {
        /// The same signals as for the thread that starts the new one.
        case inherited
        /// No signals. They are for other threads.
        case blocked
    }

    private let handle: pthread_t
    private let isJoined = Atomic(false)

    /// Starts a thread that ends when `run` returns.
    ///
    /// - Parameters:
    ///   - name: the name that the system shows; at most 15 bytes of it are kept.
    ///   - signals: the signals that the system may deliver to the thread.
    ///   - run: called once, on the thread.
    /// - Throws: `ThreadFailure` if the system cannot create another thread.
    @discardableResult
    package init(
        _ name: String,
        signals: Signals = .inherited,
        _ run: @escaping @Sendable () -> Void
    ) throws(ThreadFailure) {
        let body = ThreadBody {
            unsafe wakegate_name_thread(name)
            if signals == .blocked {
                var all = sigset_t()
                unsafe sigfillset(&all)
                unsafe pthread_sigmask(SIG_BLOCK, &all, nil)
            }
            run()
        }
        let context = unsafe Unmanaged.passRetained(body)
        var handle = pthread_t()
        let error = unsafe pthread_create(&handle, nil, runThreadBody, context.toOpaque())
        guard error == 0 else {
            unsafe context.release()
            throw ThreadFailure(cause: SystemError(error).message)
        }
        self.handle = handle
    }

    deinit {
        if !self.isJoined.load(ordering: .relaxed) { pthread_detach(self.handle) }
    }

    /// Unblocks these signals in the calling thread.
    static func unblock(_ signals: [Int32]) {
        var unblocked = sigset_t()
        unsafe sigemptyset(&unblocked)
        for signal in signals { unsafe sigaddset(&unblocked, signal) }
        unsafe pthread_sigmask(SIG_UNBLOCK, &unblocked, nil)
    }

    /// Waits for the end of the thread. A second call traps.
    package func join() {
        let wasJoined = self.isJoined.exchange(true, ordering: .relaxed)
        precondition(!wasJoined, "a thread was waited for twice")
        _ = pthread_join(self.handle, nil)
    }
}

/// The reason why a thread could not be started.
package struct ThreadFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The cause in the system's words, such as `Resource temporarily unavailable`.
    package let cause: String

    /// The fault and the remedy, for the administrator.
    package var message: String {
        "A thread cannot be started: \(self.cause). Raise the limit of threads (ulimit -u, or TasksMax= of the unit)."
    }

    package var description: String { self.message }
}

/// The function of a new thread.
private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
        self.run = run
    }
}

private func runThreadBody(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    unsafe Unmanaged<ThreadBody>.fromOpaque(context.unsafelyUnwrapped).takeRetainedValue().run()
    return nil
}

/// A pipe that turns signals into bytes, for programs that wait for all events in one place.
package enum SignalPipe {
    // Set before the handlers are installed. Afterwards, the handlers and `wake` only read it.
    private nonisolated(unsafe) static var writeEnd: Int32 = -1

    /// The byte that `wake` writes. It is not the number of a signal.
    package static let none: Int32 = 0

    /// Catches `signals`, and returns the descriptor on which each arrives as one byte with the signal's number; nil if
    /// no pipe can be created.
    package static func open(_ signals: [Int32]) -> Int32? {
        guard let pipe = try? Descriptor.pipe() else { return nil }
        unsafe self.writeEnd = pipe.writing
        for signal in signals {
            _ = Glibc.signal(signal) { number in
                let saved = errno
                var byte = UInt8(truncatingIfNeeded: number)
                _ = unsafe write(SignalPipe.writeEnd, &byte, 1)
                errno = saved
            }
        }
        // The parent process may have left the signals blocked, as threads of libdispatch do. They would then never
        // arrive.
        NamedThread.unblock(signals)
        return pipe.reading
    }

    /// Ends a wait for the descriptor. May be called on any thread.
    package static func wake() {
        var byte = UInt8(self.none)
        // If the pipe is full, the write fails, but the descriptor is readable and ends the wait anyway.
        _ = unsafe write(self.writeEnd, &byte, 1)
    }

    /// Returns the numbers of the signals since the last call, and `none` for each call of `wake`; at most 256 in all.
    package static func read(_ descriptor: Int32) -> [Int32] {
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = (try? Descriptor.read(descriptor, into: &bytes)) ?? 0
        return bytes.prefix(count).map { Int32($0) }
    }
}
