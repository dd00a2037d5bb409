import Wire

/// The token that shows a provider, as APNs asks for it: a JSON web token signed by ES256.
package struct ProviderToken: Hashable, Sendable {
    private let keyFile: String
    private let team: String
    private let keyID: String

    /// Reads `--provider-key`, `--team` and `--key-id`.
    ///
    /// - Returns: nil when none of them is given.
    /// - Throws: `badUsage` when only some are, or `--token` wants the same header.
    package init?(_ parsed: ParsedCommand) throws(CommandFailure) {
        let options = [("--provider-key", "FILE.p8"), ("--team", "TEAM"), ("--key-id", "ID")]
        let given = options.filter { parsed.isSet($0.0) }
        if given.isEmpty { return nil }
        if let (name, placeholder) = options.first(where: { !parsed.isSet($0.0) }) {
            throw .usage("\(name) is missing beside \(given[0].0); write \(name) \(placeholder)")
        }
        if parsed.isSet("--token") {
            throw .usage("--token and --provider-key both say who sends the push; leave one out")
        }
        self.keyFile = parsed.text("--provider-key") ?? ""
        self.team = parsed.text("--team") ?? ""
        self.keyID = parsed.text("--key-id") ?? ""
    }

    /// The value of the header `authorization`.
    ///
    /// - Parameters:
    ///   - now: UNIX time in seconds; the token is good for an hour from then.
    ///   - sign: signs a message with the key in a file.
    package func header(
        now: Int,
        sign: (_ message: [UInt8], _ keyFile: String) throws -> [UInt8]
    ) throws(CommandFailure) -> String {
        let head = "{\"alg\":\"ES256\",\"kid\":\(JSONText.quoted(self.keyID))}"
        let claims = "{\"iss\":\(JSONText.quoted(self.team)),\"iat\":\(now)}"
        let message = "\(Base64.urlText(Array(head.utf8))).\(Base64.urlText(Array(claims.utf8)))"
        do {
            return "bearer \(message).\(Base64.urlText(try sign(Array(message.utf8), self.keyFile)))"
        } catch {
            throw CommandFailure(.failed, "--provider-key: \(error)")
        }
    }
}
