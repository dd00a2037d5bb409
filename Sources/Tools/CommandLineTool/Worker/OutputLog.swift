import Glibc

/// One of our outputs, to which lines are written whenever it takes them: a reader that sleeps holds up nobody.
struct OutputLog {
    /// What a pipe takes whole, and without waiting, once it is writable.
    private static let writeBytesMax = Int(PIPE_BUF)

    let descriptor: Int32
    private(set) var queue = OutputQueue()

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Takes a line of a command.
    mutating func append(_ line: [UInt8], now: Int64) { self.queue.append(line, now: now) }

    /// Takes a line of our own, after those that are told to have been dropped.
    mutating func appendOwn(_ line: String) {
        self.queue.tellDropped()
        self.queue.appendOwn(line)
    }

    /// Writes what can be written without waiting.
    mutating func write() {
        while !self.queue.isEmpty {
            // The descriptor may be shared with others, so it is not made non-blocking.
            var interest = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
            guard unsafe poll(&interest, 1, 0) > 0 else { return }
            let part = self.queue.next(Self.writeBytesMax)
            let count = unsafe part.withUnsafeBytes { unsafe Glibc.write(self.descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                self.queue.wrote(count)
            } else if errno == EAGAIN {
                return
            } else if errno != EINTR {
                // The reader is gone; what it does not read is not kept.
                self.queue.wrote(part.count)
            }
        }
    }
}
