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
