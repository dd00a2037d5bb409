package import Engine
import Platform
package import ServiceManager
package import Storage
package import Wire

/// The files of a gateway in its state folder. With a database, these are only the credentials.
package struct GatewayStore: Sendable {
    let folder: String
    let kind: GatewayConfiguration.Store
    private let acceptsLoss: Bool
    /// The limits of the history. If nothing is stored, the limits for memory apply instead of the configured ones.
    package let historyLimits: HistoryLimits

    package init(_ configuration: GatewayConfiguration) {
        self.folder = configuration.stateFolder
        self.kind = configuration.store
        self.acceptsLoss = configuration.acceptsLoss
        self.historyLimits =
            switch configuration.store {
            case .memory: .inMemory
            case .sqlite, .postgresql:
                HistoryLimits(
                    bytesMax: configuration.limits.historyBytesMax,
                    ageMillisecondsMax: Int64(configuration.limits.historySeconds) * 1000
                )
            }
    }

    static let journalName = "journal.sqlite"

    var journalPath: String { "\(self.folder)/\(Self.journalName)" }

    private var historyPath: String { "\(self.folder)/history.sqlite" }

    /// Opens the journal; returns nil if nothing is stored in a file. A separate thread makes its checkpoints for the
    /// lifetime of the process.
    ///
    /// - Parameters:
    ///   - retention: the events that the history has made durable, and that the journal need not keep.
    ///   - log: receives the reason for a failed checkpoint, and the name of a missing file.
    package func openJournal(_ retention: EventRetention, _ log: GatewayLog) throws(StoreError) -> (any RecordStore)? {
        guard self.kind == .sqlite else { return nil }
        let journal = try Journal(
            path: self.journalPath,
            follower: self.historyPath,
            acceptsLoss: self.acceptsLoss
        )
        journal.retention = retention
        _ = try CheckpointThread(journal) { log.write(.checkpointFailed, ["cause": $0.message]) }
        return journal
    }

    /// Opens the journal for a reader that writes nothing.
    func journalToRead() throws(StoreError) -> Journal {
        try Journal(path: self.journalPath, follower: self.historyPath, acceptsLoss: self.acceptsLoss)
    }

    /// A reader for the events that the history lacks; nil if nothing is stored in a file.
    package var journalEvents: JournalEvents? { self.kind == .sqlite ? JournalEvents(path: self.journalPath) : nil }

    /// The fault of the journal that would prevent a start, found without reading all of it; nil if there is none.
    package var journalFault: String? {
        self.kind == .sqlite ? Journal.fault(path: self.journalPath, follower: self.historyPath)?.message : nil
    }

    /// Returns the key with which the history numbers devices and pushes. If there was no key, `save` creates its file.
    /// With a shared database, the engine uses the key of all gateways instead.
    ///
    /// - Throws: if the file cannot be used.
    package func historyKey() throws(CredentialError) -> (key: HashKey, save: @Sendable () throws(StoreError) -> Void) {
        guard self.kind == .sqlite else { return (HistoryKey.passing(), {}) }
        let (key, save) = try HistoryKey.prepare(in: self.folder)
        return (
            key,
            { () throws(StoreError) in
                do throws(CredentialError) { try save() } catch { throw StoreError(message: error.message) }
            }
        )
    }

    /// The reason for which a start could not use that key; nil if it could. Nothing is created.
    package var historyKeyFault: String? {
        do throws(CredentialError) {
            _ = try self.historyKey()
            return nil
        } catch { return error.message }
    }

    /// True if the file of the history exists.
    var hasHistory: Bool { self.kind == .sqlite && FileSystem.exists(self.historyPath) }

    /// Opens the history; in memory if nothing is stored in a file.
    package func openHistory(key: HashKey, onTrouble: @escaping @Sendable (HistoryTrouble) -> Void) -> HistoryFile {
        let path: String? =
            switch self.kind {
            case .memory, .postgresql: nil
            case .sqlite: self.historyPath
            }
        return HistoryFile(path: path, key: key, limits: self.historyLimits, onTrouble: onTrouble)
    }
}
