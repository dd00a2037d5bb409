package import CommandLineTool
import FoundationEssentials
import Gateway
import Glibc
import Platform
import Wire

extension CommandDefinition {
    private static let folderOptions = [
        OptionDefinition("--state DIR", "the gateway's state folder"),
        OptionDefinition("--config FILE", "the gateway's configuration, which names its state folder"),
    ]

    package static let tokenIssue = CommandDefinition(
        "token issue",
        "issue a bearer token for a worker or an operator, and print it",
        options: [
            OptionDefinition(
                "--role ROLE",
                "worker or operator",
                value: .word,
                isRequired: true,
                words: BearerRole.allCases.map(\.rawValue)
            ),
            OptionDefinition(
                "--topic TOPIC",
                "a topic for which the token is valid; without it, an operator's token is valid for all topics",
                isRepeatable: true
            ),
            OptionDefinition("--expires TIME", "its lifetime, such as 12h; default: \(TokenLifetime.standard)"),
        ] + folderOptions,
        example: "wakegate token issue --role worker --topic com.example.app --state /var/lib/wakegate",
        notes: """
            The token is printed to standard output. Its id, which `wakegate token revoke` needs, is printed to standard
            error. All tokens are signed with token.key in the state folder, which the first token creates (mode 0600).

            After the first token is issued, even one for an operator, `wakegate serve` requires every worker to
            authenticate; on addresses other than loopback it always does. It requires operators to authenticate on
            addresses other than loopback. `wakegate dev` requires neither. A running gateway needs no restart. Removing
            or replacing token.key invalidates every token. A gateway that has required tokens does not start without
            token.key, unless tls.clientCA or unaskedWorkers is set.

            A worker's token permits subscribing, reporting results and conditions, registering and removing devices,
            requesting background tasks, and reporting finished transfers, in its topics. An operator's token permits
            this and the admin API. An operator's token with --topic shows nothing of other topics, and of a device only
            the events since its last registration. It is refused for everything that concerns all topics, such as
            totals and backups.
            """,
        run: TokenCommands.issue
    )

    package static let tokenList = CommandDefinition(
        "token list",
        "list the issued bearer tokens, with their last use",
        options: [OptionDefinition("--json", "as JSON")] + folderOptions,
        example: "wakegate token list --state /var/lib/wakegate",
        notes: """
            The tokens themselves are not stored. A running gateway records the last use of a token to the minute,
            within one or two seconds; an open stream counts as use. Each state folder has its own list.
            """,
        run: TokenListCommand.run
    )

    package static let tokenRevoke = CommandDefinition(
        "token revoke",
        "revoke a bearer token at once",
        arguments: [ArgumentDefinition("ID", "the token's id, which `wakegate token issue` and `token list` show")],
        options: [
            OptionDefinition("--unlisted", "also a token that `token list` does not have, as of another gateway")
        ]
            + folderOptions,
        example: "wakegate token revoke 0123456789abcdef0123456789abcdef --state /var/lib/wakegate",
        notes: """
            The id is added to token.revoked in the state folder. A running gateway refuses the token from the next
            request on, and ends its open streams within one or two seconds.
            """,
        run: TokenCommands.revoke
    )
}

/// `wakegate token`.
enum TokenCommands {
    static func issue(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let role = parsed.text("--role").flatMap { BearerRole(rawValue: $0) } ?? .worker
        let topics = try self.topics(parsed.all("--topic"), role)
        let seconds = try TokenLifetime.seconds(parsed.text("--expires") ?? TokenLifetime.standard)
        let isConfigured = !parsed.isSet("--state") && parsed.isSet("--config")
        let folder = try StateFolder.prepare(try self.folder(parsed, mayBeNew: isConfigured), admitsRoot: true)
        let issuedAt = SystemClock.wall / 1000
        let token = BearerToken(
            id: BearerToken.newID(),
            role: role,
            topics: topics,
            expiresAt: issuedAt + seconds
        )
        let text: String
        do {
            text = try token.text(signedWith: try TokenKey.make(in: folder))
            try IssuedTokens.add(token, issuedAt: issuedAt, in: folder)
        } catch {
            throw .failed("\(error)")
        }
        Console.out("\(text)\n")
        let scope = topics.isEmpty ? "every topic" : topics.joined(separator: ", ")
        Console.error(
            "wakegate: token \(token.id) (\(role.rawValue), \(scope)) of \(folder) is good until "
                + "\(TimeText.instant(Double(token.expiresAt) * 1000))"
        )
        return 0
    }

    static func revoke(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let id = parsed.arguments[0]
        guard BearerToken.isID(id) else {
            throw .usage("\"\(id)\" is not a token's id; write the 32 digits that `wakegate token issue` showed")
        }
        let folder = try self.folder(parsed)
        guard TokenKey.exists(in: folder) else {
            throw .failed(
                "no token was issued from \(folder): token.key is missing; name the gateway's folder with --state DIR"
            )
        }
        let prepared = try StateFolder.prepare(folder, admitsRoot: true)
        do throws(CredentialError) {
            if !parsed.isSet("--unlisted") {
                let isListed = try IssuedTokens.read(in: prepared).contains { $0.id == id }
                guard isListed else { throw Self.unlisted(id, folder) }
            }
            try RevokedTokens.add(id, in: prepared)
        } catch {
            throw .failed(error.message)
        }
        Console.error("wakegate: token \(id) of \(folder) is revoked")
        return 0
    }

    private static func unlisted(_ id: String, _ folder: String) -> CredentialError {
        CredentialError(
            message: "no token \(id) was issued from \(folder), and nothing is revoked; see `wakegate token list`, "
                + "and give --unlisted for one that another gateway or an older version issued"
        )
    }

    private static func topics(_ topics: [String], _ role: BearerRole) throws(CommandFailure) -> [String] {
        if let wrong = topics.first(where: { !BearerToken.isTopic($0) }) {
            throw .usage("--topic is \"\(wrong)\"; write 1 to 255 characters out of A-Z, a-z, 0-9, '.', '_' and '-'")
        }
        guard topics.count <= BearerToken.topicsMax else {
            throw .usage("--topic was given \(topics.count) times; a token names at most \(BearerToken.topicsMax)")
        }
        guard !topics.isEmpty || role == .operator else {
            throw .usage("--topic is missing; a worker's token names its topics: write --topic TOPIC")
        }
        return topics
    }

    /// Returns the absolute path of the state folder that `--state` or the configuration names.
    ///
    /// - Throws: `CommandFailure` if the folder does not exist and `mayBeNew` is false.
    static func folder(_ parsed: ParsedCommand, mayBeNew: Bool = false) throws(CommandFailure) -> String {
        let named: String
        if let folder = parsed.text("--state") {
            named = folder
        } else {
            named = try ServeCommand.configuration(parsed, file: parsed.text("--config")).stateFolder
        }
        let folder = CommandFile.absolute(named)
        guard mayBeNew || FileSystem.exists(folder) else {
            throw .failed(
                "the state folder \(folder) does not exist; name the gateway's with --state DIR or --config FILE"
            )
        }
        return folder
    }
}

/// The lifetime of a token, from `--expires`.
package enum TokenLifetime {
    package static let standard = "90d"

    /// Returns the lifetime in seconds.
    ///
    /// - Throws: `badUsage` if `text` is not a duration, is less than a second, or exceeds ten years.
    package static func seconds(_ text: String) throws(CommandFailure) -> Int64 {
        if let milliseconds = DurationText.milliseconds(text), 1...BearerToken.lifetimeMax ~= milliseconds / 1000 {
            return milliseconds / 1000
        }
        throw .usage(
            "--expires is \"\(text)\"; write a duration from 1s to \(BearerToken.lifetimeMax / 86_400)d, such as 90d"
        )
    }
}

/// `wakegate token list`.
enum TokenListCommand {
    /// A token with its state and use.
    struct Row: Hashable, Sendable {
        let id: String
        /// The record of the token's issue; nil if an older version issued the token without a record.
        let issued: IssuedToken?
        let isRevoked: Bool
        /// The last use in seconds since 1970; nil if the token was never used.
        let usedAt: Int64?

        /// - Parameter now: the time in seconds since 1970.
        func state(_ now: Int64) -> String {
            if self.isRevoked { return "revoked" }
            guard let issued = self.issued else { return "unknown" }
            return issued.expiresAt <= now ? "expired" : "good"
        }
    }

    static func run(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let folder = try TokenCommands.folder(parsed)
        let rows: [Row]
        do throws(CredentialError) { rows = try self.rows(in: folder) } catch {
            throw .failed(error.message)
        }
        let now = SystemClock.wall / 1000
        return parsed.show(json: self.json(rows, now), self.table(rows, now))
    }

    /// Returns the issued tokens in the order of their issue. Tokens that have a recorded use but no record of their
    /// issue are last.
    static func rows(in folder: String) throws(CredentialError) -> [Row] {
        let issued = try IssuedTokens.read(in: folder)
        let uses = try TokenUses.read(in: folder)
        let revoked = try RevokedTokens.read(in: folder)
        let known = Set(issued.map(\.id))
        let rows = issued.map { Row(id: $0.id, issued: $0, isRevoked: revoked.contains($0.id), usedAt: uses[$0.id]) }
        let others = uses.keys.filter { !known.contains($0) }.sorted()
        return rows + others.map { Row(id: $0, issued: nil, isRevoked: revoked.contains($0), usedAt: uses[$0]) }
    }

    private static func instant(_ seconds: Int64?) -> String? { seconds.map { TimeText.instant(Double($0) * 1000) } }

    /// Returns a table with a line for each token.
    static func table(_ rows: [Row], _ now: Int64) -> String {
        guard !rows.isEmpty else { return "no token was issued\n" }
        let lines = rows.map { row in
            let topics = row.issued.map { $0.topics.isEmpty ? "every topic" : $0.topics.joined(separator: ",") }
            return [
                row.id, row.state(now), row.issued?.role.rawValue ?? "-", self.instant(row.issued?.expiresAt) ?? "-",
                self.instant(row.usedAt) ?? "never", topics ?? "-",
            ]
        }
        return TableText.lines([["id", "state", "role", "expires", "last used", "topics"]] + lines)
    }

    private static func json(_ rows: [Row], _ now: Int64) -> String {
        let objects = rows.map { row in
            let topics = (row.issued?.topics ?? []).map { JSONText.quoted($0) }.joined(separator: ",")
            let members = [
                "\"id\":\(JSONText.quoted(row.id))", "\"state\":\(JSONText.quoted(row.state(now)))",
                "\"role\":\(row.issued.map { JSONText.quoted($0.role.rawValue) } ?? "null")", "\"topics\":[\(topics)]",
                "\"issuedAt\":\(row.issued.map { "\($0.issuedAt * 1000)" } ?? "null")",
                "\"expiresAt\":\(row.issued.map { "\($0.expiresAt * 1000)" } ?? "null")",
                "\"usedAt\":\(row.usedAt.map { "\($0 * 1000)" } ?? "null")",
            ]
            return "{\(members.joined(separator: ","))}"
        }
        return "{\"tokens\":[\(objects.joined(separator: ","))]}\n"
    }
}
