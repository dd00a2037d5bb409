/// Why a file of the state folder that credentials hang on cannot be used; the message names the file and the remedy.
package struct CredentialError: Error, Hashable, Sendable, CustomStringConvertible {
    package let message: String

    package init(message: String) {
        self.message = message
    }

    package var description: String { self.message }
}
