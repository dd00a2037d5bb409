package import Wire

/// Keeps records so that they outlive the process.
///
/// It has one user at a time, on any thread.
package protocol RecordStore: AnyObject {
    /// Hands over the newest record of every key, each once, in no particular order; a view is valid during the call.
    ///
    /// Of events it hands over every record that is still there, some perhaps twice, and in any case the newest.
    /// Called once, before `begin`. Nothing is written.
    ///
    /// - Throws: `StoreError` when what is kept cannot be read whole; then nothing that was handed over may be used.
    func load(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError)

    /// What was lost of what was once committed, and is given up by `begin`; nil when nothing was. Known until then.
    var loss: StoreLoss? { get }

    /// What `begin` makes goes on beside another store from what both have in common: it is a copy, or something is
    /// given up. Numbers that either gives could be given by the other, too. Known until then.
    var beginsAnother: Bool { get }

    /// Takes over what was loaded, when its user has verified what it means: it is durable from here on, and commits
    /// may follow. Called once, before the first commit; until then every file is as it was.
    ///
    /// - Throws: `StoreError` when nothing can be written; the store is then of no use.
    func begin() throws(StoreError)

    /// Makes one batch durable: when this returns, a crash loses nothing of it.
    ///
    /// - Throws: `StoreError` when it could not. Whether the batch is found at the next start is then open: nothing of
    ///   it may be told to anybody, and nothing more may be committed.
    func commit(_ batch: borrowing RecordBatch) throws(StoreError)

    /// Why nothing more can be committed, if that is known before the next commit. Any thread.
    var failure: StoreError? { get }

    /// Hands over, as `load` does, what was durable when a commit failed, reading it anew. Only after a failure.
    func reload(_ take: (RecordKey, ByteView) throws(StoreError) -> Void) throws(StoreError)
}

extension RecordStore {
    package var beginsAnother: Bool { self.loss != nil }

    package var failure: StoreError? { nil }
}

/// Why a store could not keep, or not give back, what it was asked for.
package struct StoreError: Error, Hashable, Sendable {
    /// What happened, to which file, and what to do, in whole sentences.
    package let message: String

    package init(message: String) {
        self.message = message
    }
}

extension StoreError: CustomStringConvertible {
    package var description: String { self.message }
}

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
