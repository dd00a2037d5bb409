/// A command line that fits the definition of its command.
package struct ParsedCommand: Sendable {
    package let command: CommandDefinition
    /// The options' values by name; an option that stands alone has one empty value.
    package var values: [String: [String]] = [:]
    package var arguments: [String] = []
    /// The words after `--`.
    package var trailing: [String] = []

    package init(_ command: CommandDefinition) {
        self.command = command
    }

    package func isSet(_ option: String) -> Bool { self.values[option] != nil }

    /// The option's value, or its last one.
    package func text(_ option: String) -> String? { self.values[option]?.last }

    /// The values of an option that may be repeated.
    package func all(_ option: String) -> [String] { self.values[option] ?? [] }

    /// The value of an option whose definition asks for a whole number.
    package func integer(_ option: String) -> Int? { self.text(option).flatMap { Int($0) } }
}
