/// The files of a state folder without which a copy of it would let in, or show, what the folder does not.
package enum SecretFiles {
    /// The names of the files, each with the most bytes it has.
    private static let files = [
        (name: TokenKey.name, bytesMax: SecretFile.bytesMax),
        (name: RevokedTokens.name, bytesMax: RevokedTokens.fileBytesMax),
        (name: HistoryKey.name, bytesMax: SecretFile.bytesMax),
    ]

    package static var names: [String] { self.files.map(\.name) }

    /// Copies those that there are, each with mode 0600.
    ///
    /// - Throws: when one of them cannot be read or written, or others may use it.
    package static func copy(from folder: String, to copy: String) throws(CredentialError) {
        for file in self.files {
            _ = try CredentialFile.copy("\(folder)/\(file.name)", to: "\(copy)/\(file.name)", bytesMax: file.bytesMax)
        }
    }
}
