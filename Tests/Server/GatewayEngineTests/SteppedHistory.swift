import Engine
import Gateway
import Storage
import Synchronization
import WakeGateTestKit

/// Keeps the history on the thread of the test, and makes it durable at every second batch.
///
/// `@unchecked Sendable`: one thread uses it.
final class SteppedHistory: HistoryOutlet, @unchecked Sendable {
    private let medium: any SimulatedMedium
    private let mailboxes: PerOutlet<LoopMailbox>
    private var feed: HistoryFeed?
    private var file: HistoryFile?
    private var batches = 0
    /// What the history lacks for good, in words.
    private(set) var faults: [String] = []

    init(_ medium: any SimulatedMedium, _ mailboxes: PerOutlet<LoopMailbox>) {
        self.medium = medium
        self.mailboxes = mailboxes
    }

    func open() {
        let file =
            self.medium.openHistory()
            ?? HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in }
        self.medium.retention.advance(to: file.durableSequence)
        self.file = file
        self.feed = HistoryFeed(file, self.medium.retention, nil) { [weak self] in self?.faults.append($0) }
    }

    func waitUntilOpened() -> HistoryFound? { self.file?.found }

    func submit(_ batch: inout HistoryBatch) {
        guard let feed = self.feed, let file = self.file else { return }
        feed.take(batch)
        for question in batch.questions { question.answer(from: file, self.mailboxes) }
        batch.removeAll()
        self.batches += 1
        feed.flush()
        if self.batches.isMultiple(of: 2) { feed.sync() }
    }
}
