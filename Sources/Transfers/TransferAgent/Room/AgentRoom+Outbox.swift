import ServiceManager

/// Something that the gateway is to be told, and when next.
struct Outgoing {
    var entry: OutboxEntry
    var nextAt: Int64
    var failures = 0
    var isOnItsWay = false
    var lastError: String?
}

/// The outbox: what the gateway is told of finished sessions.
extension AgentRoom {
    /// The most that wait to be told; the oldest goes for one more.
    package static let outboxMax = 10_000
    /// The most requests to the gateway at a time.
    private static let onTheirWayMax = 4

    /// Has a session's device woken; stored with what made it necessary.
    func wake(_ device: String, _ number: Int32, _ finished: Int) {
        guard let session = self.book.name(of: number) else { return }
        // What the gateway cannot have heard of yet takes up what is new.
        let other = self.outbox.first {
            !$0.value.entry.wasTried && $0.value.entry.session == session && $0.value.entry.device == device
        }
        if var entry = other?.value.entry {
            entry.finished = min(100_000, entry.finished + finished)
            self.outbox[entry.sequence]?.entry = entry
            self.writes.append(.putOutbox(entry))
            return
        }
        if self.outbox.count >= Self.outboxMax, let oldest = self.outbox.keys.min() {
            self.outbox[oldest] = nil
            self.writes.append(.deleteOutbox(sequence: oldest))
            self.tally.refusedWakes += 1
            self.log.write(.wakeRefused, ["session": session, "cause": "the outbox is full"])
        }
        let entry = OutboxEntry(
            sequence: self.nextSequence,
            device: device,
            session: session,
            finished: finished,
            event: "\(TransferID(self.random.pair()))"
        )
        self.nextSequence += 1
        self.outbox[entry.sequence] = Outgoing(entry: entry, nextAt: self.now)
        self.writes.append(.putOutbox(entry))
    }

    func sendOutbox() {
        guard self.settings.gateway != nil else { return }
        var onTheirWay = self.outbox.values.reduce(0) { $0 + ($1.isOnItsWay ? 1 : 0) }
        for sequence in self.outbox.keys.sorted() {
            guard onTheirWay < Self.onTheirWayMax else { return }
            guard let waiting = self.outbox[sequence], !waiting.isOnItsWay, waiting.nextAt <= self.now else { continue }
            onTheirWay += 1
            self.outbox[sequence]?.isOnItsWay = true
            if !waiting.entry.wasTried {
                self.outbox[sequence]?.entry.wasTried = true
                var entry = waiting.entry
                entry.wasTried = true
                self.writes.append(.putOutbox(entry))
            }
            let entry = waiting.entry
            self.afterCommit { [world = self.world, tell = self.tell] in
                world.send(entry) { tell(.outbox(sequence: sequence, $0)) }
            }
        }
    }

    func outboxTold(_ sequence: Int64, _ outcome: OutboxSender.Outcome) {
        guard var outgoing = self.outbox[sequence] else { return }
        outgoing.isOnItsWay = false
        switch outcome {
        case .delivered:
            self.tally.delivered += 1
            self.outbox[sequence] = nil
            self.writes.append(.deleteOutbox(sequence: sequence))
        case .refused(let cause):
            self.tally.refusedWakes += 1
            self.outbox[sequence] = nil
            self.writes.append(.deleteOutbox(sequence: sequence))
            self.log.write(.wakeRefused, ["session": outgoing.entry.session, "cause": cause])
        case .again(let cause):
            outgoing.failures += 1
            outgoing.lastError = cause
            outgoing.nextAt = self.now + self.settings.retry.wait(failures: outgoing.failures, using: &self.random)
            self.outbox[sequence] = outgoing
            self.log.write(.wakeDelayed, ["session": outgoing.entry.session, "cause": cause])
        }
    }
}
