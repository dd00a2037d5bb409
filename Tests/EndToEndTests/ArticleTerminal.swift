import Foundation
import Testing

/// Where the commands of an article are run, one after another, and held to what the article shows.
///
/// In an article `...` stands for anything, and moments, wakes and spaces are an example's.
final class ArticleTerminal {
    private(set) var gateway: RunningGateway
    /// The shell's variables, as it takes them.
    private var assignments = ""
    private var background: [ChildProcess] = []
    /// Wakes that came, by the ids that the article shows for them.
    private var wakes: [String: String] = [:]

    init(_ gateway: RunningGateway) {
        self.gateway = gateway
    }

    /// Goes on with another gateway, which the shell's variables outlive.
    func move(to gateway: RunningGateway) {
        self.background = []
        self.gateway = gateway
    }

    /// Runs a command, and compares what it writes; one that only asks is run until it writes what is shown.
    func run(_ shown: ShownCommand) throws {
        let command = self.wakes.reduce(shown.command) { $0.replacing($1.key, with: $1.value) }
        if command.wholeMatch(of: #/(export )?([A-Z_]+=\S+ ?)+/#) != nil {
            self.assignments += "\(command)\n"
        } else if command.hasSuffix(" &") {
            try self.start(String(command.dropLast(2)), shows: shown.output)
        } else if ["wakegate task list ", "wakegate stats ", "curl -s http", "curl -s \"http"].contains(
            where: { command.hasPrefix($0) }
        ) {
            var last = ""
            try self.gateway.eventually("\(command): \(last)") {
                last = try self.output(of: command)
                return Self.isShown(last, as: shown.output)
            }
        } else {
            let output = try self.output(of: command)
            #expect(Self.isShown(output, as: shown.output), "\(command): \(output)")
        }
    }

    /// The next line of the command that was first put into the background.
    func backgroundLine() throws -> String? { try self.background.first?.line() }

    /// Compares what the command that was first put into the background writes next.
    func goesOn(as lines: [String]) throws {
        for line in lines {
            let written = try self.backgroundLine() ?? "(the end)"
            #expect(Self.isShown(written, as: [line]), "\(written)")
        }
    }

    /// The words of a command, as the shell takes them apart.
    static func words(of command: String) throws -> [String] {
        try ChildProcess.run("bash", ["-c", "printf '%s\\n' \(command)"]).output.split(separator: "\n").map(String.init)
    }

    // MARK: Shells

    /// What a shell runs here for a command: the article's gateway stands where everybody looks for it.
    private func script(_ command: String) -> String {
        let folder = URL(fileURLWithPath: RunningGateway.program).deletingLastPathComponent().path
        let here =
            "\(self.assignments)\(command)"
            .replacing("https://127.0.0.1:2197", with: "https://\(self.gateway.edge)")
            .replacing("http://127.0.0.1:9197", with: "http://\(self.gateway.admin)")
        return "export PATH=\(folder):$PATH NO_PROXY='*' no_proxy='*'\n\(here)"
    }

    private func output(of command: String) throws -> String {
        let script = "exec 2>&1\n\(self.script(command))"
        return try ChildProcess.run("bash", ["-c", script], folder: self.gateway.folder).output
    }

    private func start(_ command: String, shows lines: [String]) throws {
        let process = try ChildProcess("bash", ["-c", self.script("exec \(command)")], folder: self.gateway.folder)
        self.background.append(process)
        for line in lines {
            let written = try process.line() ?? "(the end; \(process.errors))"
            #expect(Self.isShown(written, as: [line]), "\(command): \(written)")
            for (shown, came) in zip(line.matches(of: Self.wake), written.matches(of: Self.wake)) {
                self.wakes[String(shown.output)] = String(came.output)
            }
        }
    }

    // MARK: Comparison

    private static var wake: Regex<Substring> { #/\b[0-9a-f]{32}\b/#.wordBoundaryKind(.simple) }

    /// What is the same in every run.
    private static func general(_ text: String) -> String {
        let text =
            text
            .replacing(#/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/#, with: "MOMENT")
            .replacing(#/\bin( [0-9]+ (d|h|min|s)\b)+/#.wordBoundaryKind(.simple), with: "in SOME TIME")
            .replacing(#/\b1[0-9]{12}\b/#.wordBoundaryKind(.simple), with: "INSTANT")
            .replacing(Self.wake, with: "WAKE")
        return text.filter { !$0.isWhitespace }
    }

    private static func isShown(_ output: String, as lines: [String]) -> Bool {
        // A sentence may end right before what is left out.
        let text = lines.joined(separator: "\n").replacing("...", with: "\u{2026}")
        let parts = self.general(text).components(separatedBy: "\u{2026}")
        var rest = Substring(self.general(output))
        guard parts.count > 1 else { return rest == parts[0] }
        guard rest.hasPrefix(parts[0]) else { return false }
        rest = rest.dropFirst(parts[0].count)
        for part in parts[1..<(parts.count - 1)] {
            guard let range = rest.range(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return rest.hasSuffix(parts[parts.count - 1])
    }
}
