import Glibc
package import Platform
import Synchronization
import Wire

/// The program's standard output and standard error. `TerminalText` filters all text except the drawings of views,
/// because these contain terminal control sequences.
package enum Console {
    /// The error number of a failed write to standard output; 0 if none has failed.
    private static let failure = Atomic<Int32>(0)

    /// The error of standard output; nil if no write has failed, or if the reader closed the pipe.
    package static var outputError: SystemError? {
        let number = self.failure.load(ordering: .relaxed)
        return number == 0 ? nil : SystemError(number)
    }

    /// Writes lines of text to standard output. If that fails, `outputError` returns the error.
    package static func out(_ text: String) { self.draw(TerminalText.lines(text)) }

    /// Writes JSON to standard output, and ends it with a line feed.
    package static func out(json text: String) { self.draw(self.line(json: text)) }

    private static func line(json text: String) -> String {
        TerminalText.json(text.hasSuffix("\n") ? text : text + "\n")
    }

    /// Writes the drawing of a view to standard output unchanged. `TerminalText` must have filtered its text.
    static func draw(_ text: String) {
        if let error = self.write(text, to: STDOUT_FILENO) { self.failed(error) }
    }

    /// Records an error of standard output. It is not an error if the reader has closed the pipe.
    private static func failed(_ error: SystemError) {
        if error.number != EPIPE { self.failure.store(error.number, ordering: .relaxed) }
    }

    /// Writes lines of text, or JSON, to standard output. Meanwhile it reads signals from the pipe `signals`, and stops
    /// at the first one.
    ///
    /// - Returns: false if it stopped before the whole text was written, or if standard output failed.
    package static func out(_ text: String, isJSON: Bool, until signals: Int32) -> Bool {
        let shown = isJSON ? self.line(json: text) : TerminalText.lines(text)
        return shown.withByteView { bytes in
            var rest = bytes
            while !rest.isEmpty {
                var waits = [Descriptor.Wait(STDOUT_FILENO, .writable), Descriptor.Wait(signals, .readable)]
                guard Descriptor.wait(for: &waits, milliseconds: -1) else { continue }
                if waits[1].isOver, !SignalPipe.read(signals).isEmpty { return false }
                guard waits[0].isOver else { continue }
                do throws(SystemError) {
                    // A pipe that is ready accepts this number of bytes without blocking.
                    let part = rest[0..<min(rest.count, Int(PIPE_BUF))]
                    rest = rest.dropFirst(try Descriptor.write(STDOUT_FILENO, part))
                } catch {
                    if error.number == EINTR || error.number == EAGAIN { continue }
                    self.failed(error)
                    return false
                }
            }
            return true
        }
    }

    /// Writes `line` and a line feed to standard error.
    package static func error(_ line: String) { self.drawError(TerminalText.lines(line) + "\n") }

    /// Writes the drawing of a view to standard error unchanged. `TerminalText` must have filtered its text.
    static func drawError(_ text: String) { _ = self.write(text, to: STDERR_FILENO) }

    /// Writes `line` and a line feed to standard error. Gives up if standard error remains blocked for `milliseconds`.
    ///
    /// - Returns: false if the line was not written.
    package static func error(_ line: String, waitingAtMost milliseconds: Int32) -> Bool {
        guard Descriptor.wait(for: STDERR_FILENO, .writable, milliseconds: milliseconds) else { return false }
        Self.error(line)
        return true
    }

    /// True if standard output is a terminal.
    package static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Asks a question on standard error. Returns true if a person answers yes, and false for any other answer or if
    /// standard input is not a terminal.
    static func confirms(_ question: String) -> Bool {
        guard isatty(STDIN_FILENO) == 1 else { return false }
        Self.error(question)
        return ["y", "yes"].contains(readLine()?.lowercased())
    }

    /// - Returns: the error of the write; nil if it succeeded.
    private static func write(_ text: String, to descriptor: Int32) -> SystemError? {
        text.withByteView { bytes in
            do throws(SystemError) {
                try Descriptor.writeWhole(descriptor, bytes)
                return nil
            } catch {
                return error
            }
        }
    }
}
