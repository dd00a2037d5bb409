/// One command: everything there is to know of it, so that parsing, help, manual and completions agree.
package struct CommandDefinition: Sendable {
    package typealias Run = @Sendable (ParsedCommand, CommandEnvironment) async throws(CommandFailure) -> Int32

    /// The words that select the command, such as `device register`.
    package let name: String
    /// What the command does, in one line.
    package let summary: String
    package let arguments: [ArgumentDefinition]
    /// What stands for the words after `--`, such as `COMMAND [ARG...]`; nil when the command takes none.
    package let trailing: String?
    package let options: [OptionDefinition]
    /// A command line that works when pasted.
    package let example: String
    /// What a reader of the help should know besides, in paragraphs.
    package let notes: [String]
    package let run: Run

    package init(
        _ name: String,
        _ summary: String,
        arguments: [ArgumentDefinition] = [],
        trailing: String? = nil,
        options: [OptionDefinition] = [],
        example: String,
        notes: [String] = [],
        run: @escaping Run
    ) {
        self.name = name
        self.summary = summary
        self.arguments = arguments
        self.trailing = trailing
        self.options = options
        self.example = example
        self.notes = notes
        self.run = run
    }

    /// The words of the name.
    package var words: [String] { self.name.split(separator: " ").map(String.init) }

    /// The usage line: required options in full, the others as `[options]`.
    package var usage: String {
        var parts = ["wakegate", self.name] + self.arguments.map(\.usage)
        parts += self.options.filter(\.isRequired).map(\.usage)
        if self.options.contains(where: { !$0.isRequired }) { parts.append("[options]") }
        if let trailing = self.trailing { parts += ["--", trailing] }
        return parts.joined(separator: " ")
    }
}

/// The arguments of a command that are no options.
package struct ArgumentDefinition: Sendable {
    /// What stands for the argument in the help, such as `TOKEN`.
    package let placeholder: String
    package let help: String
    /// How many there may be.
    package let count: ClosedRange<Int>
    /// What a shell offers for it; a word that ends with `=` is gone on with.
    package let words: [String]

    package init(_ placeholder: String, _ help: String, count: ClosedRange<Int> = 1...1, words: [String] = []) {
        self.placeholder = placeholder
        self.help = help
        self.count = count
        self.words = words
    }

    /// The argument as the usage line shows it: `TOKEN`, `[TOKEN]`, `NAME=VALUE...`.
    package var usage: String {
        let repeated = self.count.upperBound > 1 ? "\(self.placeholder)..." : self.placeholder
        return self.count.lowerBound == 0 ? "[\(repeated)]" : repeated
    }
}
