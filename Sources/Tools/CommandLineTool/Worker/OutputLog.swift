import Glibc
import Platform

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
            guard Descriptor.wait(for: self.descriptor, .writable, milliseconds: 0) else { return }
            let part = self.queue.next(Self.writeBytesMax)
            do throws(SystemError) {
                self.queue.wrote(try Descriptor.write(self.descriptor, Array(part)))
            } catch {
                switch error.number {
                case EAGAIN: return
                case EINTR: continue
                // The reader is gone; what it does not read is not kept.
                case _: self.queue.wrote(part.count)
                }
            }
        }
    }
}
