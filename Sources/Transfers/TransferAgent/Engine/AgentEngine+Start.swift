import Engine
import Platform
import ServiceManager
package import Storage

/// The restoration of the stored state at the start.
extension AgentEngine {
    /// The counts of restored items.
    package struct RestoreSummary: Hashable, Sendable {
        package var transfers = 0
        /// The number of unknown files that were removed.
        package var strayFiles = 0
        /// The number of rows of the store that could not be read.
        package var unreadable = 0
        /// The number of finished downloads that are still available although their row is damaged.
        package var recoveredFiles = 0
    }

    /// Restores the stored state. Must be called once, before the first turn.
    package func restore() throws(SQLiteError) -> RestoreSummary {
        let clocks = try self.store.clock()
        self.clock = AgentClock(resuming: clocks, boot: self.files.boot, self.world)
        if let jump = self.clock.jump { self.logClockJump(jump) }
        var found = RestoreSummary()
        try self.store.sessions { number, details in
            let readable = StoredSession(stored: details)
            if readable == nil { found.unreadable += 1 }
            let stored = readable ?? Self.unreadable(number)
            self.scheduler.restoreSession(
                number,
                stored.name,
                stored.session,
                unannouncedCount: stored.unannouncedCount,
                isForceQuit: stored.isForceQuit
            )
        }
        var moves: [(TransferID, PartFile, String)] = []
        var unreadable: Set<TransferID> = []
        try self.store.transfers { stored in
            let transfer = stored.transfer
            self.scheduler.restoreTransfer(transfer, now: self.now)
            self.nextSequence = max(self.nextSequence, transfer.sequence + 1)
            found.transfers += 1
            if stored.isUnreadable { unreadable.insert(transfer.id) }
            guard let part = stored.details?.part else { return }
            self.fileNames[transfer.id] = part.file
            if let path = stored.details?.destination { moves.append((transfer.id, part, path)) }
        }
        for entry in try self.store.outbox({ found.unreadable += 1 }) {
            self.outbox[entry.sequence] = Outgoing(entry: entry, nextAt: self.now)
            self.nextSequence = max(self.nextSequence, entry.sequence + 1)
        }
        if let clocks { self.scheduler.adjustForWallClockChange(by: self.clock.stepped(since: clocks), now: self.now) }
        // Files whose rows are damaged. They are kept, because an operator may repair the store.
        var nameless: Set<String> = []
        for resumable in try self.store.resumableParts({ nameless.insert($0) }) {
            self.resumableParts[resumable.part.file] = resumable
        }
        found.unreadable += unreadable.count + nameless.count
        found.recoveredFiles = self.recoverFiles(of: unreadable)
        if found.unreadable > 0 {
            let fields = ["rows": "\(found.unreadable)", "files": "\(found.recoveredFiles)"]
            self.log.write(.transferStoreDamaged, fields.merging(["state": self.settings.stateFolder]) { $1 })
        }
        self.flush()
        let known = Set(self.fileNames.values).union(self.resumableParts.keys).union(nameless)
        found.strayFiles = self.files.removeFiles(except: known)
        for (id, part, path) in moves { self.finishInterruptedMove(id, part, path) }
        self.announceEndedSessions()
        return found
    }

    /// Returns a placeholder for a session whose row is damaged. Its transfers can thus still be listed, moved to their
    /// destinations and deleted.
    private static func unreadable(_ number: Int32) -> StoredSession {
        var session = TransferSession()
        session.sendsLaunchEvents = false
        return StoredSession(name: "unreadable-\(number)", session: session, unannouncedCount: 0)
    }

    /// Finds the finished files of transfers whose rows are damaged. A file matches if its name begins with the
    /// transfer's identifier and it has the transfer's length.
    ///
    /// - Returns: the number of found files.
    private func recoverFiles(of transfers: Set<TransferID>) -> Int {
        guard !transfers.isEmpty else { return 0 }
        var saved = 0
        for name in self.files.names {
            guard let id = TransferID(name.prefix(while: { $0 != "-" })), transfers.contains(id),
                let transfer = self.scheduler.transfer(id), transfer.state == .finished, !transfer.isTaken,
                self.files.size(of: name) == transfer.bytes
            else { continue }
            self.change(id) { details in
                details.part = PartFile(
                    file: name,
                    validator: nil,
                    total: transfer.bytes,
                    synced: transfer.bytes,
                    boot: self.files.boot
                )
            }
            saved += 1
        }
        return saved
    }

    private func logClockJump(_ jump: WallClockJump) {
        let meaning =
            jump.isHeldBack
            ? "no time counts as elapsed since the last commit" : "elapsed time follows the new clock"
        self.log.write(
            .clockJumped,
            [
                "lastCommit": WallTime.text(jump.from), "now": WallTime.text(jump.to),
                "seconds": "\((jump.to - jump.from).magnitude / 1000)", "meaning": meaning,
                "remedy": "check the clock",
            ]
        )
    }

    /// Completes or reverts a move that was interrupted when the agent ended. The start does not wait for it, because
    /// the destination may not respond.
    private func finishInterruptedMove(_ id: TransferID, _ part: PartFile, _ path: String) {
        self.moving.insert(id)
        self.postponed[id] = []
        let move = InterruptedMove(part.file, to: path, in: self.files)
        self.world.move { [post = self.post] in
            guard let isTaken = move.step() else { return true }
            post(.moved(nil, id, isTaken ? nil : .gone))
            return false
        }
    }

    /// Announces the ends of sessions that were not announced, because the agent ended just after their last transfer.
    private func announceEndedSessions() {
        for name in self.scheduler.sessionNames {
            if let number = self.scheduler.number(of: name) { self.announceEnd(of: number) }
        }
        self.flush()
    }
}
