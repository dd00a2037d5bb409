/// What the commands use of the rest of the program.
package struct CommandEnvironment: Sendable {
    /// How the program was called, for command lines to paste.
    package let programName: String
    /// The commit that the program was built of; nil when the build was not told.
    package let commit: String?
    /// Signs a message with the key in a file, by ES256; the signature is R and then S.
    package let signES256: @Sendable (_ message: [UInt8], _ keyFile: String) throws -> [UInt8]

    package init(
        programName: String,
        commit: String?,
        signES256: @escaping @Sendable (_ message: [UInt8], _ keyFile: String) throws -> [UInt8]
    ) {
        self.programName = programName
        self.commit = commit
        self.signES256 = signES256
    }
}
