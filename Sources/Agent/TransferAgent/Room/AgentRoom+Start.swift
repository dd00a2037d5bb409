import DeviceEngine
import EventLog
import Platform
package import SQLite
import TransferPolicy

/// What a start finds of what was stored.
extension AgentRoom {
    /// What was found.
    package struct Found: Hashable, Sendable {
        package var sessions = 0
        package var transfers = 0
        /// Files that nobody knew, and that were removed.
        package var strayFiles = 0
        /// Sessions that cannot be read.
        package var unreadable = 0
    }

    /// Reads what was stored; called once, before the first turn.
    package func restore() throws(SQLiteError) -> Found {
        let clocks = try self.store.clock()
        self.clock = AgentClock(resuming: clocks, boot: self.files.boot, self.world)
        if let jump = self.clock.jump { self.tell(of: jump) }
        var found = Found()
        try self.store.sessions { number, facts in
            guard let stored = StoredSession(stored: facts) else {
                found.unreadable += 1
                return
            }
            self.book.sessionRestored(number, stored.name, stored.session, untold: stored.untold)
            found.sessions += 1
        }
        var moves: [(TransferID, PartFile, String)] = []
        try self.store.transfers(host: self.host) { stored in
            let transfer = stored.transfer
            self.book.transferRestored(transfer, now: self.now)
            self.nextSequence = max(self.nextSequence, transfer.sequence + 1)
            found.transfers += 1
            guard let part = stored.facts?.part else { return }
            self.fileNames[transfer.id] = part.file
            if let path = stored.facts?.taking { moves.append((transfer.id, part, path)) }
        }
        for entry in try self.store.outbox() {
            self.outbox[entry.sequence] = Outgoing(entry: entry, nextAt: self.now)
            self.nextSequence = max(self.nextSequence, entry.sequence + 1)
        }
        if let clocks { self.book.wallClockSet(by: self.clock.stepped(since: clocks), now: self.now) }
        for kept in try self.store.kept() { self.kept[kept.part.file] = kept }
        for (id, part, path) in moves { self.moveFound(id, part, path) }
        self.flush()
        let known = Set(self.fileNames.values).union(self.kept.keys)
        found.strayFiles = self.files.cleaned(keeping: known)
        self.lookAtSessions()
        return found
    }

    private func tell(of jump: WallClockJump) {
        let meaning =
            jump.isHeldBack
            ? "no time counts as passed since the last commit" : "what passed goes by the clock as it is now"
        self.log.write(
            .clockJumped,
            [
                "lastCommit": WallTime.text(jump.from), "now": WallTime.text(jump.to),
                "seconds": "\((jump.to - jump.from).magnitude / 1000)", "meaning": meaning,
                "remedy": "see to the clock",
            ]
        )
    }

    /// A file was being moved to its place when the agent ended.
    private func moveFound(_ id: TransferID, _ part: PartFile, _ path: String) {
        self.files.removeLeftover(of: part.file, at: path)
        guard self.files.wasTaken(part.file, to: path) else { return self.change(id) { $0.taking = nil } }
        self.change(id) { facts in
            facts.taking = nil
            facts.part = nil
        }
        _ = self.book.taken(id)
        self.removeSoon(part.file)
    }

    /// Sessions that ended with the agent, between the end of their last transfer and whoever is told of it.
    private func lookAtSessions() {
        for name in self.book.sessionNames {
            guard let number = self.book.number(of: name) else { continue }
            if case .wake(let device, _, let finished) = self.book.sessionLooked(at: number) {
                self.wake(device, number, finished)
            }
        }
        self.flush()
    }
}
