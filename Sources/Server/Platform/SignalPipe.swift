import Glibc

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
