import Wire

/// The definition of a command. The parser, the help, the manual and the completions use it.
package struct CommandDefinition: Sendable {
    package typealias Run = @Sendable (ParsedCommand) async throws(CommandFailure) -> Int32

    /// The words that select the command, such as `device register`.
    package let name: String
    /// The description of the command, in one line.
    package let summary: String
    package let arguments: [ArgumentDefinition]
    /// The placeholder for the words after `--`, such as `COMMAND [ARG...]`; nil if the command does not accept any.
    package let trailing: String?
    package let options: [OptionDefinition]
    /// A complete command line.
    package let example: String
    /// Further paragraphs of the help, separated by empty lines; empty for none.
    package let notes: String
    /// Further pages of the help, each by the word that shows it if it follows `--help`.
    package let helpPages: [String: String]
    package let run: Run

    package init(
        _ name: String,
        _ summary: String,
        arguments: [ArgumentDefinition] = [],
        trailing: String? = nil,
        options: [OptionDefinition] = [],
        example: String,
        notes: String = "",
        helpPages: [String: String] = [:],
        run: @escaping Run
    ) {
        self.name = name
        self.summary = summary
        self.arguments = arguments
        self.trailing = trailing
        self.options = options
        self.example = example
        self.notes = notes
        self.helpPages = helpPages
        self.run = run
    }

    /// The words of the name.
    package var words: [String] { self.name.split(separator: " ").map(String.init) }

    /// The usage line, with required options in full and other options as `[options]`.
    package var usage: String {
        var parts = ["wakegate", self.name] + self.arguments.map(\.usage)
        parts += self.options.filter(\.isRequired).map(\.usage)
        if self.options.contains(where: { !$0.isRequired }) { parts.append("[options]") }
        if let trailing = self.trailing { parts += ["--", trailing] }
        return parts.joined(separator: " ")
    }
}

/// A positional argument of a command.
package struct ArgumentDefinition: Sendable {
    /// The placeholder of the argument in the help, such as `TOKEN`.
    package let placeholder: String
    package let help: String
    /// The number of values that the argument accepts.
    package let count: ClosedRange<Int>
    /// The words that a shell completes. A word that ends with `=` must be followed by a value.
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

/// An option of a command, for the parser, the help, the manual and the completions.
package struct OptionDefinition: Sendable {
    /// The form of an option's value.
    package enum Value: Hashable, Sendable {
        /// The option has no value.
        case none
        case text
        /// One of the option's words.
        case word
        /// A whole number in the range.
        case integer(ClosedRange<Int>)
        /// A duration whose seconds are in the range, such as `90` or `10m`.
        case duration(ClosedRange<Int>)
        /// `NAME=VALUE`.
        case setting
    }

    /// The option as the help shows it, such as `--topic TOPIC`.
    package let usage: String
    package let value: Value
    /// The description of the option, in one line.
    package let help: String
    package let isRequired: Bool
    package let isRepeatable: Bool
    /// The words that a shell completes. A word that ends with `=` must be followed by a value.
    package let words: [String]

    /// - `usage`: the name with its dashes, then a space and the placeholder if the option has a value. A placeholder
    ///   such as `yes|no` lists the only values.
    package init(
        _ usage: String,
        _ help: String,
        value: Value = .text,
        isRequired: Bool = false,
        isRepeatable: Bool = false,
        words: [String] = []
    ) {
        self.usage = usage
        self.help = help
        self.isRequired = isRequired
        self.isRepeatable = isRepeatable
        let parts = usage.split(separator: " ", maxSplits: 1)
        let choices = parts.count == 1 ? [] : parts[1].split(separator: "|").map(String.init)
        self.value = parts.count == 1 ? .none : choices.count > 1 ? .word : value
        self.words = choices.count > 1 ? choices : words
    }

    /// The name with its dashes, such as `--topic`.
    package var name: String { String(self.usage.prefix { $0 != " " }) }

    /// The placeholder of the value in the help, such as `TOPIC`; empty for an option without a value.
    package var placeholder: String { String(self.usage.dropFirst(self.name.count + 1)) }

    /// Returns the option `--set KEY=VALUE`. A shell completes the keys.
    package static func set(_ help: String, _ keys: [String]) -> OptionDefinition {
        let words = keys.map { "\($0)=" }
        return OptionDefinition("--set KEY=VALUE", help, value: .setting, isRepeatable: true, words: words)
    }

    /// The description, with a remark if the option is required or may be repeated.
    var markedHelp: String {
        self.help + (self.isRequired ? " (required)" : self.isRepeatable ? " (may be repeated)" : "")
    }
}

extension OptionDefinition {
    /// The options of the program itself.
    package static let program = [
        OptionDefinition("--help", "show this help; after a command, the help of that command"),
        OptionDefinition("--version", "show the version"),
    ]

    /// The options of every command that connects to a gateway.
    package static let client = [
        OptionDefinition(
            "--gateway URL",
            "the gateway; overrides WAKEGATE_URL, the context and the `wakegate dev` of this folder"
        ),
        OptionDefinition("--context NAME", "the context to use, from `wakegate context add`"),
        OptionDefinition("--ca FILE", "PEM file of the authority that signed the gateway's certificate; WAKEGATE_CA"),
        OptionDefinition("--token TOKEN", "the bearer token; WAKEGATE_TOKEN, which ps does not show"),
        OptionDefinition(
            "--token-file FILE",
            "file with the bearer token, which ps does not show; WAKEGATE_TOKEN_FILE"
        ),
        OptionDefinition("--cert FILE", "PEM file of the client certificate; WAKEGATE_CERT"),
        OptionDefinition(
            "--key FILE",
            "PEM file of its private key; WAKEGATE_KEY with WAKEGATE_CERT; default: the file of --cert"
        ),
    ]

    /// The environment variables that correspond to options of client commands.
    static let variables = (
        url: "WAKEGATE_URL", authority: "WAKEGATE_CA", token: "WAKEGATE_TOKEN", tokenFile: "WAKEGATE_TOKEN_FILE",
        certificate: "WAKEGATE_CERT", key: "WAKEGATE_KEY"
    )

    /// The precedence of the sources of client settings, for the help.
    static let precedence = """
        An option overrides the variables WAKEGATE_URL, WAKEGATE_CA, WAKEGATE_TOKEN_FILE, WAKEGATE_TOKEN, WAKEGATE_CERT
        and WAKEGATE_KEY. These override the context in use, and that overrides a `wakegate dev` that runs in this
        folder. If --gateway or WAKEGATE_URL names the gateway, nothing of the context in use is sent to it; --context
        NAME overrides the variables. Without any of these, as in the folder of a `wakegate dev` that has stopped,
        commands use https://127.0.0.1:2197 (operators: http://127.0.0.1:9197), whichever gateway runs there.
        """
}

/// A parsed command line that matches the definition of its command.
package struct ParsedCommand: Sendable {
    package let command: CommandDefinition
    /// The values of the options by name. An option without a value has one empty value.
    package var values: [String: [String]] = [:]
    package var arguments: [String] = []
    /// The words after `--`.
    package var trailing: [String] = []

    package func isSet(_ option: String) -> Bool { self.values[option] != nil }

    /// Returns the last value of the option.
    package func text(_ option: String) -> String? { self.values[option]?.last }

    /// Returns all values of a repeatable option.
    package func all(_ option: String) -> [String] { self.values[option] ?? [] }

    /// Returns the value of an option as a whole number.
    package func integer(_ option: String) -> Int? { self.text(option).flatMap { Int($0) } }

    /// Returns the value of an option as a duration in seconds, rounded up.
    package func seconds(_ option: String) -> Int? {
        self.text(option).flatMap { DurationText.milliseconds($0) }.map { Int(($0 + 999) / 1000) }
    }
}
