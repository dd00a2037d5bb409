import Engine
import Storage
import WakeGateTestKit
import Wire

/// What happened, as the gateway keeps it: with the commit among the records, and then in the history.
extension DispatchSimulation {
    /// Takes what happened since the last commit into the batch of the next.
    func takeEvents(into batch: inout RecordBatch, _ commit: inout SimulatedLives.Commit) {
        self.rig.engine.takeEvents(into: &commit.events)
        guard !commit.events.isEmpty else { return }
        commit.sequence += 1
        let (events, sequence) = (commit.events, commit.sequence)
        var end = 0
        batch.append(EventRecord.key(sequence)) {
            let mark = HistoryEvent.mark(of: EngineRig.historyKey)
            end = EventRecord.write(events, from: 0, sequence: sequence, keyMark: mark, to: &$0)
        }
        if end != events.count { self.fail("more happened in one step than a record takes") }
    }

    /// A commit has returned: the history hears of it, and writes it sooner or later.
    func tellHistory(_ commit: SimulatedLives.Commit) {
        guard let history = self.lives?.history, let retention = self.lives?.medium.retention else { return }
        if !commit.events.isEmpty { history.append(commit.events[...], ofRecord: commit.sequence) }
        if commit.number % 2 == 0 { history.flush() }
        if commit.number % 3 == 0 { history.sync() }
        retention.advance(to: history.durableSequence)
        _ = history.tidy()
    }

    /// A start gives the history what it lacks; then it has what the commits that were found tell of, each event once.
    func recoverHistory(_ records: SimulatedStore.Records, as found: SimulatedLives.Commit) {
        guard let medium = self.lives?.medium else { return }
        var kept: [UInt64: [HistoryEvent]] = [:]
        for (key, content) in records where key.kind == .events {
            content.withByteView { content in
                guard let record = try? EventRecord(content) else { return self.fail("a record of events is none") }
                try? record.read { kept[record.sequence, default: []].append($0) }
            }
        }
        let sorted = kept.sorted { $0.key < $1.key }
        guard let history = medium.openHistory() else {
            self.lives?.coverage.note(.eventsRecovered, sorted.count)
            if sorted.flatMap(\.value) != found.happened { self.fail("the records tell of other events than happened") }
            return
        }
        let written = history.writtenSequence
        for (sequence, events) in sorted { history.append(events[...], ofRecord: sequence) }
        history.flush()
        history.sync()
        medium.retention.advance(to: history.durableSequence)
        self.lives?.history = history
        // What failed already is looked at after the next start.
        guard !medium.metFault else { return }
        guard history.takenSequence == found.sequence else {
            return self.fail("the history goes on to record \(history.takenSequence), and not to \(found.sequence)")
        }
        for token in self.tokens {
            let device = HistoryEvent.device(of: token, EngineRig.historyKey)
            let told = history.entries(device: device, count: .max)
            var happened = HistoryEntries()
            for event in found.happened.reversed() where event.device == device { happened.append(event) }
            let expected = happened.finish()
            if told != expected {
                let first = zip(told, expected).first { $0 != $1 }
                let counts = "\(told.count) events of a device, and \(expected.count)"
                self.fail("the history tells of \(counts) happened: \(first as Any)")
            }
        }
        self.lives?.coverage.note(.eventsRecovered, sorted.count { $0.key > written })
    }
}
