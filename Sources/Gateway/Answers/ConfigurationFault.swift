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

    package var description: String { "\(self.key): \(self.problem); \(self.remedy)" }
}
