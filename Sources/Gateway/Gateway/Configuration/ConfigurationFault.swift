/// One thing that is wrong with a configuration.
package struct ConfigurationFault: Hashable, Sendable, CustomStringConvertible {
    /// The full name of the key, such as `policy.launchInterval`; the file's name when the file itself is at fault.
    package var key: String
    /// What is wrong.
    package var problem: String
    /// What to write instead.
    package var remedy: String

    package init(key: String, problem: String, remedy: String) {
        self.key = key
        self.problem = problem
        self.remedy = remedy
    }

    /// - Parameter error: its message says what is wrong, and behind a semicolon what to do.
    init(key: String, _ error: CredentialError) {
        let sentence = error.message.hasSuffix(".") ? error.message.dropLast() : error.message[...]
        let parts = sentence.split(separator: "; ", maxSplits: 1)
        self.init(key: key, problem: String(parts[0]), remedy: parts.dropFirst().joined())
    }

    package var description: String { "\(self.key): \(self.problem); \(self.remedy)" }
}
