import Gateway
import Platform
import Wire

/// `wakegate token list`.
enum TokenListCommand {
    /// One token with what became of it.
    struct Row: Hashable, Sendable {
        let id: String
        /// Nil for one that an older version issued.
        let issued: IssuedToken?
        let isRevoked: Bool
        /// Seconds since 1970; nil when it was never used.
        let usedAt: Int64?

        /// - Parameter now: seconds since 1970.
        func state(_ now: Int64) -> String {
            if self.isRevoked { return "revoked" }
            guard let issued = self.issued else { return "unknown" }
            return issued.expiresAt <= now ? "expired" : "good"
        }
    }

    static func run(
        _ parsed: ParsedCommand,
        _ environment: CommandEnvironment
    ) async throws(CommandFailure) -> Int32 {
        let folder = StateFolder.absolute(try TokenCommands.folder(parsed))
        guard FileSystem.exists(folder) else {
            throw CommandFailure(.failed, "there is no folder \(folder); name the gateway's folder with --state DIR")
        }
        let rows: [Row]
        do throws(CredentialError) { rows = try self.rows(in: folder) } catch {
            throw CommandFailure(.failed, error.message)
        }
        let now = SystemClock.wall / 1000
        if parsed.isSet("--json") {
            Console.out(json: self.json(rows, now))
        } else {
            Console.out(self.table(rows, now))
        }
        return 0
    }

    /// The tokens that were issued, in that order, and those that were only used.
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

    /// A line for each token below one that names the columns.
    static func table(_ rows: [Row], _ now: Int64) -> String {
        guard !rows.isEmpty else { return "no token was issued\n" }
        let lines = rows.map { row in
            let topics = row.issued.map { $0.topics.isEmpty ? "every topic" : $0.topics.joined(separator: ",") }
            return [
                row.id, row.state(now), row.issued?.role.rawValue ?? "-", self.instant(row.issued?.expiresAt) ?? "-",
                self.instant(row.usedAt) ?? "never", topics ?? "-",
            ]
        }
        let table = [["id", "state", "role", "expires", "last used", "topics"]] + lines
        let widths = (0..<5).map { column in table.map { $0[column].count }.max() ?? 0 }
        return table.map { row in
            let cells = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            return TerminalText.harmless((cells + [row[5]]).joined(separator: "  ")) + "\n"
        }.joined()
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
