import Wire

/// A parser for command lines, based on the definitions of the commands.
package struct CommandParser {
    private let commands: [CommandDefinition]

    package init(_ commands: [CommandDefinition]) {
        self.commands = commands
    }

    /// Parses the words after the program's name.
    ///
    /// - Throws: `badUsage` with the mistake and the remedy.
    package func parse(_ words: [String]) throws(CommandFailure) -> ParsedLine {
        guard let first = words.first else {
            throw .usage("no command was given; try `wakegate dev`, or `wakegate --help` for all commands")
        }
        switch first {
        case "--help", "-h", "help": return try self.help(Array(words.dropFirst()))
        case "--version", "version": return .version
        default: break
        }
        if first.hasPrefix("-") {
            let near = NearestMatch.find(first, in: OptionDefinition.program.map(\.name))
            throw .usage(
                "unknown option \(first); " + (near.map { "did you mean \($0)?" } ?? "see `wakegate --help`")
            )
        }
        let command = try self.command(words)
        guard let command else { return .helpOfGroup(first) }
        return try self.parse(Array(words.dropFirst(command.words.count)), of: command)
    }

    /// Returns a hint if the words ask to explain a device, such as `why TOKEN` or `device show`; otherwise nil.
    private static func explainHint(_ words: [String]) -> String? {
        let token = words.dropFirst().last { $0.withByteView { DeviceToken(hex: $0) } != nil }
        let isShown = words[0] == "device" && words.count > 1 && [token, "show", "why"].contains(words[1])
        guard isShown || ["why", "explain"].contains(words[0]) else { return nil }
        let name = token ?? "TOKEN"
        return "\"\(isShown ? "device \(words[1])" : words[0])\"; `wakegate stats --device \(name)` explains a device, "
            + "and `wakegate doctor \(name)` says what would help"
    }

    private func help(_ words: [String]) throws(CommandFailure) -> ParsedLine {
        guard let first = words.first, !first.hasPrefix("-") else { return .help }
        return try self.command(words).map { .helpOf($0) } ?? .helpOfGroup(first)
    }

    /// Returns the command whose name `words` begin with; nil for the help of a group, such as `device --help`.
    private func command(_ words: [String]) throws(CommandFailure) -> CommandDefinition? {
        let first = words[0]
        let group = self.commands.filter { $0.words[0] == first }
        let matching = self.commands.filter { words.starts(with: $0.words) }
        if let command = matching.max(by: { $0.words.count < $1.words.count }) {
            // A second word such as `shwo` is a misspelled command, not an argument.
            guard command.words.count == 1, words.count > 1, !words[1].hasPrefix("-"),
                let near = NearestMatch.find(words[1], in: group.compactMap { $0.words.dropFirst().first })
            else { return command }
            throw .usage("unknown command \"\(first) \(words[1])\"; did you mean `wakegate \(first) \(near)`?")
        }
        if let hint = Self.explainHint(words) { throw .usage("unknown command \(hint)") }
        guard group.isEmpty else {
            let names = group.map { $0.words[1] }
            guard words.count > 1 else {
                throw .usage("`wakegate \(first)` needs one of: \(names.joined(separator: ", "))")
            }
            if words[1] == "--help" || words[1] == "-h" { return nil }
            let near = NearestMatch.find(words[1], in: names)
            throw .usage(
                "unknown command \"\(first) \(words[1])\"; "
                    + (near.map { "did you mean `wakegate \(first) \($0)`?" }
                        ?? "there are: \(names.joined(separator: ", "))")
            )
        }
        var names: [String] = []
        for command in self.commands where !names.contains(command.words[0]) { names.append(command.words[0]) }
        let near = NearestMatch.find(first, in: names)
        throw .usage(
            "unknown command \"\(first)\"; "
                + (near.map { "did you mean `wakegate \($0)`?" } ?? "see `wakegate --help`")
        )
    }
}

extension CommandParser {
    private func parse(_ words: [String], of command: CommandDefinition) throws(CommandFailure) -> ParsedLine {
        var parsed = ParsedCommand(command: command)
        var index = 0
        var hasTrailing = false
        while index < words.count {
            let word = words[index]
            index += 1
            if word == "--" {
                hasTrailing = true
                parsed.trailing = Array(words[index...])
                break
            }
            let (name, attached) = Self.split(word)
            if name == "--help" || word == "-h" {
                guard let title = attached ?? words[index...].first, !command.helpPages.isEmpty else {
                    return .helpOf(command)
                }
                if let page = command.helpPages[title] { return .helpPage(page) }
                let pages = command.helpPages.keys.sorted().joined(separator: ", ")
                throw .usage("\(command.name) has no help on \"\(title)\"; there is help on: \(pages)")
            }
            guard word.hasPrefix("-"), word != "-" else {
                parsed.arguments.append(word)
                continue
            }
            let option = try self.option(name, of: command)
            let value = try Self.value(of: option, attached: attached, words: words, index: &index)
            if parsed.values[name] != nil, !option.isRepeatable {
                throw Self.usage("\(name) was given twice; give it once", of: command)
            }
            try Self.check(value, of: option)
            parsed.values[name, default: []].append(value)
        }
        if command.trailing == nil {
            // Without trailing words, `--` only ends the options.
            parsed.arguments += parsed.trailing
            parsed.trailing = []
        } else if !hasTrailing || parsed.trailing.isEmpty {
            throw Self.usage("the command to run is missing; put it after --", of: command)
        }
        try Self.checkPresence(parsed)
        return .run(parsed)
    }

    /// Splits `--name=value` into its two parts.
    private static func split(_ word: String) -> (name: String, value: String?) {
        guard word.hasPrefix("--"), let equals = word.firstIndex(of: "=") else { return (word, nil) }
        return (String(word[..<equals]), String(word[word.index(after: equals)...]))
    }

    private func option(_ name: String, of command: CommandDefinition) throws(CommandFailure) -> OptionDefinition {
        if let option = command.options.first(where: { $0.name == name }) { return option }
        if let argument = command.arguments.first(where: { "--\($0.placeholder.lowercased())" == name }) {
            let line = "wakegate \(command.name) \(argument.placeholder)"
            throw Self.usage("unknown option \(name); write `\(line)`", of: command)
        }
        let near = NearestMatch.find(name, in: command.options.map(\.name) + ["--help"])
        if let near { throw Self.usage("unknown option \(name); did you mean \(near)?", of: command) }
        let others = self.commands.filter { $0.options.contains { $0.name == name } }.map { "`wakegate \($0.name)`" }
        let only = others.count == 1 ? "; \(others[0]) alone takes it" : ""
        throw Self.usage("unknown option \(name)\(only)", of: command)
    }

    private static func value(
        of option: OptionDefinition,
        attached: String?,
        words: [String],
        index: inout Int
    ) throws(CommandFailure) -> String {
        if option.value == .none {
            guard attached == nil else { throw .usage("\(option.name) takes no value; write \(option.name) alone") }
            return ""
        }
        if let attached { return attached }
        // A word that begins with two dashes is the next option. A word with one dash may be a value: a negative
        // number, or `-` for standard input.
        guard index < words.count, !words[index].hasPrefix("--") else {
            throw .usage("\(option.name) needs a value; write \(option.usage)")
        }
        index += 1
        return words[index - 1]
    }

    private static func check(_ value: String, of option: OptionDefinition) throws(CommandFailure) {
        switch option.value {
        case .none: break
        case .text:
            guard value.isEmpty else { break }
            throw .usage("\(option.name) has an empty value; write \(option.usage)")
        case .word:
            guard !option.words.contains(value) else { break }
            let near = option.words.count == 1 ? nil : NearestMatch.find(value, in: option.words)
            let question = near.map { "; did you mean \($0)?" } ?? ""
            throw .usage("\(option.name) is \"\(value)\"; write \(Self.list(option.words, "or"))\(question)")
        case .integer(let range):
            guard let number = Int(value), range.contains(number) else {
                let numbers = "a whole number from \(range.lowerBound) to \(range.upperBound)"
                let remedy = option.words.isEmpty ? numbers : Self.list(option.words, "or")
                throw .usage("\(option.name) is \"\(value)\"; write \(remedy)")
            }
        case .duration(let range):
            guard let milliseconds = DurationText.milliseconds(value),
                Int64(range.lowerBound) * 1000...Int64(range.upperBound) * 1000 ~= milliseconds
            else {
                let limits = "from \(range.lowerBound) s to \(range.upperBound) s"
                throw .usage("\(option.name) is \"\(value)\"; write a duration \(limits), such as 90 or 10m")
            }
        case .setting:
            guard let equals = value.firstIndex(of: "="), equals != value.startIndex else {
                throw .usage("\(option.name) is \"\(value)\"; write \(option.usage)")
            }
        }
    }

    /// Returns the words as a list, such as `a, b or c`.
    private static func list(_ words: [String], _ conjunction: String) -> String {
        let first = words.dropLast().joined(separator: ", ")
        return (first.isEmpty ? "" : "\(first) \(conjunction) ") + (words.last ?? "")
    }

    private static func checkPresence(_ parsed: ParsedCommand) throws(CommandFailure) {
        let command = parsed.command
        let maximum = command.arguments.reduce(0) { $0 + $1.count.upperBound }
        var wanted = 0
        var missing: [String] = []
        for argument in command.arguments where argument.count.lowerBound > 0 {
            wanted += argument.count.lowerBound
            if wanted > parsed.arguments.count { missing.append(argument.placeholder) }
        }
        missing += command.options.filter { $0.isRequired && parsed.values[$0.name] == nil }.map(\.usage)
        if !missing.isEmpty {
            let verb = missing.count == 1 ? "is" : "are"
            throw Self.usage("\(Self.list(missing, "and")) \(verb) missing", of: command)
        }
        if parsed.arguments.count > maximum {
            throw Self.usage("\"\(parsed.arguments[maximum])\" is one argument too many", of: command)
        }
    }

    private static func usage(_ message: String, of command: CommandDefinition) -> CommandFailure {
        .usage("\(message)\nusage: \(command.usage)\nsee `wakegate \(command.name) --help`")
    }
}

/// The result of parsing a command line.
package enum ParsedLine: Sendable {
    case run(ParsedCommand)
    /// The help of the program.
    case help
    /// The help of one command.
    case helpOf(CommandDefinition)
    /// A further page of a command's help.
    case helpPage(String)
    /// The help of the commands that begin with a word.
    case helpOfGroup(String)
    case version
}
