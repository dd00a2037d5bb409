import Glibc

/// Lines on standard error, one a `write`.
package struct StandardError: LogSink {
    /// The descriptor that is written to.
    private let descriptor: Int32

    package init(descriptor: Int32 = STDERR_FILENO) {
        self.descriptor = descriptor
    }

    package func write(_ line: LogLine, _ format: LogFormat) -> Bool {
        let text = format == .json ? line.json : line.text
        var rest = Array("\(text)\n".utf8)[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(self.descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // Somebody made the terminal or the pipe, which is theirs as well, not wait.
                var wanted = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
                unsafe poll(&wanted, 1, -1)
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}
