import DeviceEngine
import DeviceJournal
import Foundation
import History

/// The files a gateway keeps in its state folder.
struct GatewayStore: Sendable {
    let folder: String
    let kind: GatewayConfiguration.Store

    init(_ configuration: GatewayConfiguration) {
        self.folder = configuration.stateFolder
        self.kind = configuration.store
    }

    var journalPath: String { "\(self.folder)/journal.sqlite" }

    /// Opens the journal, with a queue beside it that makes its checkpoints; nil when nothing is kept.
    ///
    /// - Parameter onTrouble: hears why a checkpoint failed; the next commit fails for the same cause.
    func openJournal(onTrouble: @escaping @Sendable (StoreError) -> Void) throws(StoreError) -> (any RecordStore)? {
        guard self.kind == .sqlite else { return nil }
        let journal = try Journal(path: self.journalPath)
        let checkpointer = try journal.makeCheckpointer()
        let queue = DispatchQueue(label: "checkpoints")
        journal.onCheckpointDue = {
            queue.async {
                do throws(StoreError) { try checkpointer.checkpoint() } catch { onTrouble(error) }
            }
        }
        return journal
    }

    /// Opens the history, in memory when nothing is kept.
    func openHistory(onTrouble: @escaping @Sendable (String) -> Void) -> HistoryFile {
        switch self.kind {
        case .memory: HistoryFile(path: nil, limits: .inMemory) { onTrouble($0.message) }
        case .sqlite: HistoryFile(path: "\(self.folder)/history.sqlite") { onTrouble($0.message) }
        }
    }
}
