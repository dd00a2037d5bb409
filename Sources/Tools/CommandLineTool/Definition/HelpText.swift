import Wire

/// Functions that make the help texts from the command definitions.
package enum HelpText {
    /// The example commands in the program's help.
    static let firstSteps = [
        "wakegate dev",
        "wakegate worker --topic com.example.app -- cat",
        "wakegate push 0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe0badcafe --topic com.example.app",
    ]

    /// Returns the help of the whole program.
    package static func program(_ commands: [CommandDefinition]) -> String {
        let list = commands.map { ($0.name, $0.summary) }
        return """
            WakeGate \(wakeGateVersion): silent pushes for Linux. It accepts pushes as APNs does, decides when a \
            device may be woken, and wakes it.

            usage: wakegate COMMAND [options]

            commands:
            \(self.table(list))

            options:
            \(self.table(OptionDefinition.program.map { ($0.usage, $0.help) }))

            First steps, each in a separate terminal:
            \(self.firstSteps.map { "  \($0)" }.joined(separator: "\n"))

            How a client command finds its gateway:
            \(OptionDefinition.precedence.split(separator: "\n").map { "  \($0)" }.joined(separator: "\n"))

            `wakegate COMMAND --help` explains a command.

            """
    }

    /// Returns the help of one command.
    package static func command(_ command: CommandDefinition) -> String {
        var parts = ["\(command.summary)\n\nusage: \(command.usage)\n"]
        if !command.arguments.isEmpty {
            parts.append("arguments:\n\(self.table(command.arguments.map { ($0.placeholder, $0.help) }))\n")
        }
        if !command.options.isEmpty {
            parts.append("options:\n\(self.table(command.options.map { ($0.usage, $0.markedHelp) }))\n")
        }
        if !command.notes.isEmpty { parts.append("\(command.notes)\n") }
        parts.append("example:\n  \(command.example)\n")
        return parts.joined(separator: "\n")
    }

    /// Returns the help of the commands whose first word is `word`.
    package static func group(_ word: String, _ commands: [CommandDefinition]) -> String {
        let rows = commands.filter { $0.words[0] == word }.map { ($0.name, $0.summary) }
        return "usage: wakegate \(word) COMMAND\n\ncommands:\n\(self.table(rows))\n"
    }

    /// Returns the rows as two indented columns.
    private static func table(_ rows: [(String, String)]) -> String {
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { left, right in
            "  \(left)\(String(repeating: " ", count: width - left.count + 2))\(right)"
        }.joined(separator: "\n")
    }
}
