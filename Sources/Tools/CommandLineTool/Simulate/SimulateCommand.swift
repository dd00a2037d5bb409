import Glibc
package import Platform
import Policy
import Wire

extension CommandDefinition {
    package static let simulate = CommandDefinition(
        "simulate",
        "run the launch policy on a trace, in virtual time",
        arguments: [ArgumentDefinition("TRACE", "the trace, one JSON object per line; - reads standard input")],
        options: [
            .policy("set a policy parameter, such as policy.launchInterval=600; overrides the trace")
        ],
        example: #"echo '{"t": 0, "device": "a", "push": {"apnsID": "p1", "priority": 5}}' | wakegate simulate -"#,
        notes: """
            Each launch, result and discard is one JSON line on standard output; the last line is a summary.
            """,
        run: SimulateCommand.run
    )
}

/// `wakegate simulate`.
package enum SimulateCommand {
    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let overrides = try self.overrides(parsed.all("--set"))
        let path = parsed.arguments[0]
        let file: Int32
        do throws(SystemError) {
            file = path == "-" ? STDIN_FILENO : try OpenFile(path, O_RDONLY | O_CLOEXEC).release()
        } catch {
            throw self.unreadable(path, error)
        }
        let lines = LineReader(descriptor: file)
        var output = ""
        do throws(TraceError) {
            try Simulator.run(trace: lines, overrides: overrides) { line in
                output += line + "\n"
                if output.utf8.count >= 1 << 16 {
                    Console.out(json: output)
                    output = ""
                }
            }
        } catch {
            if !output.isEmpty { Console.out(json: output) }
            // The read error is reported first, because it may be the cause of an incomplete line.
            if let failure = lines.failure { throw self.unreadable(path, failure) }
            guard error.line != nil else { throw .usage(error.description) }
            throw .failed("\(path == "-" ? "standard input" : path): \(error)")
        }
        if let failure = lines.failure { throw self.unreadable(path, failure) }
        if !output.isEmpty { Console.out(json: output) }
        return 0
    }

    private static func unreadable(_ path: String, _ error: SystemError) -> CommandFailure {
        let name = path == "-" ? "standard input" : path
        return .failed("\(name) cannot be read (\(error.reason)); name a trace file, or - for standard input")
    }

    /// Returns the name and the value of each `policy.NAME=VALUE`. A value is a number or a duration such as `10m`.
    package static func overrides(_ settings: [String]) throws(CommandFailure) -> [(String, Double)] {
        var overrides: [(String, Double)] = []
        for setting in settings {
            let parts = setting.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let milliseconds = parts.count == 2 ? DurationText.milliseconds(String(parts[1])) : nil
            let value = milliseconds.map { Double($0) / 1000 } ?? parts.last.flatMap { Double($0) }
            guard parts.count == 2, let number = value, number.isFinite else {
                throw .usage(
                    "--set is \"\(setting)\"; write a number or a duration, such as --set policy.launchInterval=10m"
                )
            }
            overrides.append((String(parts[0]), number))
        }
        return overrides
    }
}

/// A reader of the lines of a file. It reads the file in blocks.
package final class LineReader: Sequence, IteratorProtocol {
    private let descriptor: Int32
    private var block: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    /// The error of the last read; nil if every read succeeded.
    package private(set) var failure: SystemError?

    package init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Returns the next line without its line feed. The last line may lack a line feed.
    package func next() -> String? {
        var searched = self.start
        while true {
            if let end = self.block[searched...].firstIndex(of: 0x0A) {
                defer { self.start = end + 1 }
                return String(decoding: self.block[self.start..<end], as: UTF8.self)
            }
            if self.isAtEnd {
                guard self.start < self.block.count else { return nil }
                defer { self.start = self.block.count }
                return String(decoding: self.block[self.start...], as: UTF8.self)
            }
            self.block.removeFirst(self.start)
            self.start = 0
            searched = self.block.count
            self.fill()
        }
    }

    private func fill() {
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        do throws(SystemError) {
            let count = try Descriptor.read(self.descriptor, into: &chunk)
            self.block += chunk[..<count]
            self.isAtEnd = count == 0
        } catch {
            guard error.number != EINTR else { return }
            self.isAtEnd = true
            self.failure = error
        }
    }
}
