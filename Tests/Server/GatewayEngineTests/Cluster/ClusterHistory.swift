import Engine
import Gateway
import Storage
import WakeGateTestKit

/// Answers what is asked about what happened from the rows of a simulated database.
///
/// `@unchecked Sendable`: one thread uses it.
final class ClusterHistory: HistoryOutlet, @unchecked Sendable {
    private let mailboxes: PerOutlet<LoopMailbox>
    /// Set before anything is asked.
    weak var database: SimulatedDatabase?
    /// nil until something is asked.
    private var file: HistoryFile?
    /// How many of the database's events are in the file.
    private var eventCount = 0

    init(_ mailboxes: PerOutlet<LoopMailbox>) { self.mailboxes = mailboxes }

    func open() {}

    func waitUntilOpened() -> HistoryFound? { nil }

    func submit(_ batch: inout HistoryBatch) {
        if !batch.questions.isEmpty, let database = self.database {
            let file =
                self.file ?? HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
            self.file = file
            file.append(database.rows.events[self.eventCount...])
            self.eventCount = database.rows.events.count
            file.flush()
            for question in batch.questions { question.answer(from: file, self.mailboxes) }
        }
        batch.removeAll()
    }
}
