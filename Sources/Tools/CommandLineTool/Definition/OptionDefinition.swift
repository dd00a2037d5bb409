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
