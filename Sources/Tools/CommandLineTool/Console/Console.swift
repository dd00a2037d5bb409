import Bytes
import Glibc
import Platform

/// The program's standard output and standard error.
package enum Console {
    /// Writes `text` to standard output, whole.
    package static func out(_ text: String) { self.write(text, to: STDOUT_FILENO) }

    /// Writes `text` to standard output, whole, unless a byte that `isEnd` holds for comes on the pipe `signals` while
    /// nobody reads.
    ///
    /// - Returns: false when one came, and the rest of the text was not written.
    package static func out(_ text: String, watching signals: Int32, until isEnd: (Int32) -> Bool) -> Bool {
        text.withByteView { bytes in
            var rest = bytes
            while !rest.isEmpty {
                var waits = [Descriptor.Wait(STDOUT_FILENO, .writable), Descriptor.Wait(signals, .readable)]
                guard Descriptor.wait(for: &waits, milliseconds: -1) else { continue }
                if waits[1].isOver, SignalPipe.read(signals).contains(where: isEnd) { return false }
                guard waits[0].isOver else { continue }
                do throws(SystemError) {
                    // A pipe that is ready takes so many without a wait.
                    let part = rest[0..<min(rest.count, Int(PIPE_BUF))]
                    rest = rest.dropFirst(try Descriptor.write(STDOUT_FILENO, part))
                } catch {
                    // A reader that went away is not ours to report.
                    guard error.number == EINTR || error.number == EAGAIN else { return true }
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
        // A reader that went away is not ours to report.
        text.withByteView { _ = Descriptor.writeAll(descriptor, $0) }
    }
}
