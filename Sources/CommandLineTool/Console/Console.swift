import Glibc

/// The program's standard output and standard error.
package enum Console {
    /// Writes `text` to standard output, whole.
    package static func out(_ text: String) { self.write(text, to: STDOUT_FILENO) }

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
