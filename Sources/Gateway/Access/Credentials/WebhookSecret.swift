import Platform

/// The secret that a webhook shares with its receiver.
package enum WebhookSecret {
    /// The fewest bytes: 128 bits, as no shorter key is worth signing with.
    static let bytesMin = 16
    static let bytesMax = 1024

    /// Reads a secret: everything in the file but the newline at its end.
    ///
    /// - Throws: `CredentialError` that names the file and the remedy.
    package static func read(_ path: String) throws(CredentialError) -> [UInt8] {
        let status: FileStatus
        do throws(SystemError) { status = try FileSystem.status(path) } catch {
            throw CredentialFile.error(path, "cannot be read", error)
        }
        guard status.permissions & 0o007 == 0 else {
            throw CredentialError(message: "everybody may use \(path); run: chmod o= \(path)")
        }
        let lines = try CredentialFile.lines(path, bytesMax: self.bytesMax)
        guard lines.count == 1, lines[0].utf8.count >= self.bytesMin else {
            throw CredentialError(
                message: "\(path) is not one line of \(self.bytesMin) to \(self.bytesMax) bytes; "
                    + "run: openssl rand -hex 32 > \(path)"
            )
        }
        return Array(lines[0].utf8)
    }
}
