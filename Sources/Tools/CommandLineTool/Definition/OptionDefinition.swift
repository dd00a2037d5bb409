/// One option of a command, as the parser, the help, the manual and the completions know it.
package struct OptionDefinition: Sendable {
    /// What an option's value must be.
    package enum Value: Hashable, Sendable {
        /// The option stands alone.
        case none
        case text
        /// A whole number in the range.
        case integer(ClosedRange<Int>)
        /// `NAME=VALUE`.
        case setting
    }

    /// The name with its dashes, such as `--topic`.
    package let name: String
    package let value: Value
    /// What stands for the value in the help, such as `TOPIC`; empty when there is none.
    package let placeholder: String
    /// What the option does, in one line.
    package let help: String
    package let isRequired: Bool
    package let isRepeatable: Bool
    /// What a shell offers for the value; a word that ends with `=` is gone on with.
    package let words: [String]

    package init(
        _ name: String,
        _ placeholder: String = "",
        _ help: String,
        value: Value = .text,
        isRequired: Bool = false,
        isRepeatable: Bool = false,
        words: [String] = []
    ) {
        self.name = name
        self.value = placeholder.isEmpty ? .none : value
        self.placeholder = placeholder
        self.help = help
        self.isRequired = isRequired
        self.isRepeatable = isRepeatable
        self.words = words
    }

    /// The option as the help shows it, such as `--topic TOPIC`.
    package var usage: String { self.placeholder.isEmpty ? self.name : "\(self.name) \(self.placeholder)" }
}

extension OptionDefinition {
    /// The options of the program itself.
    package static let program = [
        OptionDefinition("--help", "", "show this help; after a command, the help of that command"),
        OptionDefinition("--version", "", "show the version"),
    ]

    /// Options of every command that talks to a gateway.
    package static let client = [
        OptionDefinition(
            "--gateway",
            "URL",
            "the gateway, before WAKEGATE_URL, the context, `wakegate dev` of this folder"
        ),
        OptionDefinition("--context", "NAME", "the context to use, of `wakegate context add`"),
        OptionDefinition(
            "--ca",
            "FILE",
            "PEM file of the authority that signed the gateway's certificate; WAKEGATE_CA"
        ),
        OptionDefinition("--token", "TOKEN", "bearer token to show; WAKEGATE_TOKEN, which ps does not show"),
        OptionDefinition("--token-file", "FILE", "file with that token, which other users' ps does not see"),
        OptionDefinition("--cert", "FILE", "PEM file of the client certificate to show"),
        OptionDefinition("--key", "FILE", "PEM file of that certificate's private key; default: the file of --cert"),
    ]

    /// The variables that stand for options of client commands.
    static let variables = (url: "WAKEGATE_URL", authority: "WAKEGATE_CA", token: "WAKEGATE_TOKEN")

    /// Where the settings of client commands come from, for their help.
    static let precedence = """
        An option wins over the variables WAKEGATE_URL, WAKEGATE_CA and WAKEGATE_TOKEN, these over the context in use,
        and that over a `wakegate dev` that runs in this folder. Where --gateway or WAKEGATE_URL says the gateway,
        nothing of the context in use is shown to it; --context NAME wins over the variables.
        """
}
