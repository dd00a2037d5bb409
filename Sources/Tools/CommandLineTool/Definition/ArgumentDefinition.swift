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
