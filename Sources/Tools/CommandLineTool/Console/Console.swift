import Glibc
package import Platform
import Synchronization
import Wire

/// The program's standard output and standard error. Everything that is written passes the filter of `TerminalText`,
/// but for what views draw with the controls of a terminal.
package enum Console {
    /// The number of the error that standard output failed with; 0 as long as it takes everything.
    private static let failure = Atomic<Int32>(0)

    /// Why standard output did not take all that was written to it; nil when it did, or its reader went away.
    package static var outputError: SystemError? {
        let number = self.failure.load(ordering: .relaxed)
        return number == 0 ? nil : SystemError(number)
    }

    /// Writes lines of text to standard output. If that fails, `outputError` has the error.
    package static func out(_ text: String) { self.draw(TerminalText.lines(text)) }

    /// Writes JSON to standard output, and a line feed if it does not end with one.
    package static func out(json text: String) { self.draw(self.line(json: text)) }

    private static func line(json text: String) -> String {
        TerminalText.json(text.hasSuffix("\n") ? text : text + "\n")
    }

    /// Writes the drawing of a view to standard output unchanged. Its text must have passed `TerminalText` before.
    static func draw(_ text: String) {
        guard let error = self.write(text, to: STDOUT_FILENO), error.number != EPIPE else { return }
        self.failure.store(error.number, ordering: .relaxed)
    }

    /// Writes lines of text, or JSON, to standard output, unless a byte that `isEnd` holds for comes on the pipe
    /// `signals` while the reader takes nothing.
    ///
    /// - Returns: false when one came, and the rest of the text was not written.
    package static func out(
        _ text: String,
        isJSON: Bool,
        watching signals: Int32,
        until isEnd: (Int32) -> Bool
    ) -> Bool {
        let shown = isJSON ? self.line(json: text) : TerminalText.lines(text)
        return shown.withByteView { bytes in
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
    package static func error(_ line: String) { self.drawError(TerminalText.lines(line) + "\n") }

    /// Writes the drawing of a view to standard error unchanged. Its text must have passed `TerminalText` before.
    static func drawError(_ text: String) { _ = self.write(text, to: STDERR_FILENO) }

    /// Writes `line` and a line feed to standard error, unless that takes nothing for so many milliseconds.
    ///
    /// - Returns: false when the line was not written.
    package static func error(_ line: String, waitingAtMost milliseconds: Int32) -> Bool {
        guard Descriptor.wait(for: STDERR_FILENO, .writable, milliseconds: milliseconds) else { return false }
        Self.error(line)
        return true
    }

    /// Whether standard output is a terminal.
    package static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Asks a person on standard error, and whether the answer is yes; no where standard input is no terminal.
    static func isAsked(_ question: String) -> Bool {
        guard isatty(STDIN_FILENO) == 1 else { return false }
        Self.error(question)
        return ["y", "yes"].contains(readLine()?.lowercased())
    }

    /// - Returns: why the text was not taken; nil when it was.
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
