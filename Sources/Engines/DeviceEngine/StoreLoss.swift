/// What a store has lost of what was once committed, and goes on without.
package struct StoreLoss: Hashable, Sendable {
    /// The path of the file that lacks it.
    package let file: String
    /// What is wrong with it, as a clause.
    package let fault: String
    /// How many rows and commits are missing; nil when nothing tells.
    package let rows: Int64?
    package let commits: Int64?
    /// When the newest commit that is there was made, and the newest that is missing, in milliseconds since 1970; nil
    /// when nothing tells.
    package let since: Int64?
    package let until: Int64?

    package init(
        file: String,
        fault: String,
        rows: Int64? = nil,
        commits: Int64? = nil,
        since: Int64? = nil,
        until: Int64? = nil
    ) {
        self.file = file
        self.fault = fault
        self.rows = rows
        self.commits = commits
        self.since = since
        self.until = until
    }
}
