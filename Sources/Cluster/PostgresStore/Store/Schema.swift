/// The version of the tables, and how each follows from the one before.
///
/// A step adds, and changes nothing that programs one version back read or write: they run on beside this one.
/// `meta.version` is the version of the tables, `meta.oldest` the oldest program that may be attached: it stays one
/// version back until no gateway of the older program lives.
enum Schema {
    /// The version that this program works with.
    static let version: Int32 = 4

    /// What leads from each version to the next; the first makes the tables.
    static let steps: [[String]] = [
        SchemaTables.statements, EventTables.summaries, EventTables.bundles, SchemaTables.readyIndices,
    ]

    /// The statements that bring tables of version `found` to `version`; of 0 when there are none. Run within one
    /// transaction that has the lock of the schema.
    static func statements(from found: Int32) -> [String] {
        let steps = self.steps[Int(found)..<Int(self.version)].joined()
        let oldest = found == 0 ? self.version : self.version - 1
        let meta =
            found == 0
            ? "INSERT INTO wakegate.meta (version, oldest) VALUES (\(self.version), \(oldest))"
            : "UPDATE wakegate.meta SET version = \(self.version), oldest = greatest(oldest, \(oldest))"
        return Array(steps) + [meta]
    }

    /// Whether a program of this version may work with what was found.
    enum Verdict: Hashable {
        case current
        /// The tables are older, or there are none, which is version 0.
        case older(Int32)
        /// The tables are newer, and no longer those of this program.
        case newer(Int32)
    }

    /// - Parameters:
    ///   - found: the version of the tables; 0 when there are none.
    ///   - oldest: the oldest program that may be attached.
    static func verdict(found: Int32, oldest: Int32) -> Verdict {
        if oldest > self.version { return .newer(found) }
        return found < self.version ? .older(found) : .current
    }
}

/// The advisory locks: pairs of this class and a number.
enum AdvisoryLock {
    /// "wake" in ASCII. The locks of gateways have their own class, so that a number is no other lock.
    static let gateways: Int32 = 0x7761_6B65
    static let others: Int32 = 0x7761_6B66

    static let schema: Int32 = 1
    static let topics: Int32 = 2
    static let burial: Int32 = 3
    static let janitor: Int32 = 4
}
