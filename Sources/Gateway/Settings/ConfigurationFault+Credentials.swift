package import Access
package import Answers

extension ConfigurationFault {
    /// - `error`: its message says what is wrong, and behind a semicolon what to do.
    package init(key: String, _ error: CredentialError) {
        let sentence = error.message.hasSuffix(".") ? error.message.dropLast() : error.message[...]
        let parts = sentence.split(separator: "; ", maxSplits: 1)
        self.init(key: key, problem: String(parts[0]), remedy: parts.dropFirst().joined())
    }
}
