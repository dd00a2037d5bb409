import Glibc

/// The program's standard output and standard error.
package enum Console {
    /// Writes `text` to standard output, whole.
    package static func out(_ text: String) { self.write(text, to: STDOUT_FILENO) }

    /// Writes `text` to standard output, whole, unless a byte that `isEnd` holds for comes on the pipe `signals` while
    /// nobody reads.
    ///
    /// - Returns: false when one came, and the rest of the text was not written.
    package static func out(_ text: String, watching signals: Int32, until isEnd: (Int32) -> Bool) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while unsafe !rest.isEmpty {
                var waits = [
                    pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0),
                    pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
                ]
                guard unsafe poll(&waits, 2, -1) > 0 else { continue }
                if waits[1].revents != 0, SignalPipe.read(signals).contains(where: isEnd) { return false }
                guard waits[0].revents != 0 else { continue }
                // A pipe that is ready takes so many without a wait.
                let count = unsafe Glibc.write(STDOUT_FILENO, rest.baseAddress, min(rest.count, Int(PIPE_BUF)))
                if count > 0 {
                    unsafe rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno != EINTR, errno != EAGAIN {
                    // A reader that went away is not ours to report.
                    return true
                }
            }
            return true
        }
    }

    /// Writes `line` and a line feed to standard error.
    package static func error(_ line: String) { self.write(line + "\n", to: STDERR_FILENO) }

    /// Whether standard output is a terminal.
    package static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    private static func write(_ text: String, to descriptor: Int32) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while unsafe !rest.isEmpty {
                let count = unsafe Glibc.write(descriptor, rest.baseAddress, rest.count)
                if count > 0 {
                    unsafe rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno != EINTR {
                    // A reader that went away is not ours to report.
                    return
                }
            }
        }
    }
}
