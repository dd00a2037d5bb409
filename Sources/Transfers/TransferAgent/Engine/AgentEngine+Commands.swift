import CEmbeddedFiles
import HTTPClient
import HTTPTransport
import ServiceManager
import Storage
import Wire

/// The commands of callers.
extension AgentEngine {
    func take(_ command: AgentCommand, from stream: StreamID) {
        if let fault = self.storeFault, Self.needsStore(command) {
            return self.refuse(stream, self.unstorable(fault))
        }
        do throws(APIError) {
            try self.perform(command, for: stream)
        } catch {
            self.refuse(stream, error)
        }
    }

    private static func needsStore(_ command: AgentCommand) -> Bool {
        switch command {
        case .putSession, .submit, .take: true
        // These commands free disk space.
        case .deleteSession, .cancel: false
        // Answers would contain changes that are not stored and may be lost.
        case .sessions, .session, .transfers, .transfer, .events: true
        case .status, .metrics, .health, .openAPI: false
        }
    }

    private func perform(_ command: AgentCommand, for stream: StreamID) throws(APIError) {
        switch command {
        case .putSession(let name, let change): try self.put(name, change, for: stream)
        case .sessions: self.answerQuery(stream) { AgentAnswer(200, self.sessionList()) }
        case .session(let name):
            let number = try self.number(of: name)
            self.answerQuery(stream) { AgentAnswer(200, self.session(number)) }
        case .deleteSession(let name): try self.remove(try self.number(of: name), for: stream)
        case .submit(let name, let submission): try self.submit(submission, to: name, for: stream)
        case .transfers(let name, let state, let limit, let after):
            let number = try self.number(of: name)
            let sequence = try after.map { (id) throws(APIError) in try self.transfer(id, in: number).sequence } ?? 0
            self.answerQuery(stream) { self.list(number, state, limit, after: sequence) }
        case .transfer(let name, let id):
            let number = try self.number(of: name)
            _ = try self.transfer(id, in: number)
            self.answerQuery(stream) { self.found(id, in: number) }
        case .cancel(let name, let id, let keeps):
            try self.cancel(try self.transfer(id, in: try self.number(of: name)), keeps: keeps, for: stream)
        case .take(let name, let id, let path, let replaces):
            let transfer = try self.transfer(id, in: try self.number(of: name))
            if self.postponed[id]?.append(.command(stream, command)) != nil { return }
            try self.take(transfer, to: path, replaces: replaces, for: stream)
        case .events(let name): self.listen(try self.number(of: name), stream)
        case .status: self.answer(stream, AgentAnswer(200, self.status()))
        case .metrics:
            var answer = AgentAnswer(200, self.metrics())
            answer.isJSON = false
            self.answer(stream, answer)
        case .openAPI:
            let document = unsafe wakegate_transfers_openapi
            self.answer(
                stream,
                AgentAnswer(200, unsafe Array(UnsafeBufferPointer(start: document.bytes, count: document.count)))
            )
        case .health:
            guard let fault = self.storeFault else { return self.answer(stream, AgentAnswer(200, Array("{}".utf8))) }
            throw APIError(503, "StoreFailed", "Nothing can be stored (\(fault)); see to the state folder.")
        }
    }

    private func number(of name: String) throws(APIError) -> Int32 {
        guard let number = self.scheduler.number(of: name) else {
            throw APIError(
                404,
                "UnknownSession",
                "The session \(name) does not exist; make it with PUT /v1/sessions/\(name)."
            )
        }
        return number
    }

    private func transfer(_ id: TransferID, in session: Int32) throws(APIError) -> Transfer {
        guard let transfer = self.scheduler.transfer(id), transfer.session == session else {
            throw APIError(404, "UnknownTransfer", "The session has no transfer \(id); list those that it has.")
        }
        return transfer
    }

    /// Returns a transfer as an answer. Returns an error if a later command of the same turn has removed it.
    private func found(_ id: TransferID, in session: Int32) -> AgentAnswer {
        do throws(APIError) {
            _ = try self.transfer(id, in: session)
            return AgentAnswer(200, self.shown(id))
        } catch {
            return AgentAnswer(error)
        }
    }

    // MARK: Sessions

    private func put(_ name: String, _ change: SessionChange, for stream: StreamID) throws(APIError) {
        self.nextQuestionCheck = self.now
        let before = self.scheduler.number(of: name).flatMap { self.scheduler.session($0)?.session }
        var session = before ?? TransferSession()
        change(&session)
        switch self.scheduler.sessionSet(name, session) {
        case .made(let number):
            let withdraw = {
                self.scheduler.sessionRemoved(number)
                self.writes.append(.deleteSession(number))
            }
            self.answerAfterCommit(stream, withdraw: withdraw) {
                self.answer(stream, AgentAnswer(201, self.session(number)))
            }
        case .changed(let number, let stop):
            for id in stop { self.hold(id) }
            let withdraw = {
                // The session may have been deleted in the same turn. It then stays deleted.
                guard let before, self.scheduler.number(of: name) == number,
                    case .changed(_, let stop) = self.scheduler.sessionSet(name, before)
                else { return }
                for id in stop { self.hold(id) }
            }
            self.answerAfterCommit(stream, withdraw: withdraw) {
                self.answer(stream, AgentAnswer(200, self.session(number)))
            }
        case .tooMany:
            let maximum = self.settings.limits.sessionsMax
            throw APIError(409, "TooManySessions", "There are \(maximum) sessions already; delete one that is over.")
        }
    }

    func store(session number: Int32) {
        guard let session = self.scheduler.session(number)?.session, let name = self.scheduler.name(of: number) else {
            return
        }
        let isForceQuit = session.device.map { self.scheduler.isForceQuit($0) } ?? false
        let unannouncedCount = self.scheduler.unconfirmedCount(of: number)
        let stored = StoredSession(
            name: name,
            session: session,
            unannouncedCount: unannouncedCount,
            isForceQuit: isForceQuit
        )
        self.writes.append(.putSession(number, stored.stored))
    }

    private func remove(_ number: Int32, for stream: StreamID) throws(APIError) {
        guard !self.moving.contains(where: { self.scheduler.transfer($0)?.session == number }) else {
            let message = "A file of the session is being moved to its place; ask again when that is done."
            throw APIError(409, "TakeUnderWay", message)
        }
        for transfer in self.scheduler.transfers(where: { $0.session == number }) {
            self.stopAttempt(transfer.id)
            self.erase(transfer)
        }
        self.scheduler.sessionRemoved(number)
        for resumable in self.resumableParts.values where resumable.session == number {
            self.removeResumablePart(resumable)
        }
        self.writes.append(.deleteSession(number))
        for (listener, followed) in self.listeners where followed == number {
            self.listeners[listener] = nil
            self.afterCommit { self.outputs.append(.finish(listener)) }
        }
        self.answerAfterCommit(stream) { self.answer(stream, AgentAnswer(204)) }
    }

    // MARK: Transfers

    private func submit(
        _ submission: TransferSubmission,
        to name: String,
        for stream: StreamID
    ) throws(APIError) {
        let number = try self.number(of: name)
        guard let session = self.scheduler.session(number)?.session else { return }
        if self.scheduler.transferCount >= self.settings.limits.transfersMax { self.forgetOldest() }
        let earliest = submission.earliestBegin == 0 ? 0 : self.clock.moment(wall: submission.earliestBegin)
        let transfer = Transfer(
            id: TransferID(self.random.pair()),
            sequence: self.nextSequence,
            session: number,
            host: submission.host,
            kind: submission.kind,
            createdAt: self.now,
            deadline: max(self.now, earliest) + (submission.resourceTimeout ?? session.resourceTimeout),
            notBefore: earliest
        )
        guard self.scheduler.transferSubmitted(transfer, now: self.now) else {
            let maximum = self.settings.limits.transfersMax
            throw APIError(
                409,
                "TooManyTransfers",
                "There are \(maximum) transfers already; wait until some have ended."
            )
        }
        self.nextSequence += 1
        var details = TransferDetails()
        let wanted = HTTPURL.withoutCredentials(submission.spec.url)
        let resumable = self.resumableParts.values.first { resumable in
            resumable.session == number && HTTPURL.withoutCredentials(resumable.url) == wanted
        }
        if submission.kind == .download, let resumable {
            details.part = resumable.part
            self.resumableParts[resumable.part.file] = nil
            self.fileNames[transfer.id] = resumable.part.file
            self.writes.append(.deleteResumablePart(file: resumable.part.file))
        }
        self.writes.append(.insertTransfer(transfer, submission.spec, details))
        let withdraw = { self.withdraw(transfer, details.part == nil ? nil : resumable) }
        self.answerAfterCommit(stream, withdraw: withdraw) {
            self.answer(stream, AgentAnswer(201, JSONWriter.object { $0.member("transfer", "\(transfer.id)") }))
        }
    }

    /// Reverts a submission that cannot be stored.
    ///
    /// - Parameters:
    ///   - transfer: the submitted transfer.
    ///   - resumable: the part of an earlier download with which the transfer would have continued; nil if there is
    ///     none.
    private func withdraw(_ transfer: Transfer, _ resumable: ResumablePart?) {
        // The session may have been deleted in the same turn, together with the transfer.
        guard self.scheduler.transfer(transfer.id) != nil else { return }
        self.scheduler.submissionWithdrawn(transfer.id)
        self.writes.removeAll { write in
            if case .insertTransfer(let other, _, _) = write { other.id == transfer.id } else { false }
        }
        self.fileNames[transfer.id] = nil
        if let resumable {
            self.resumableParts[resumable.part.file] = resumable
            self.writes.append(.putResumablePart(resumable))
        }
        // While this transfer was pending, the other transfers of the session may have ended.
        if self.scheduler.session(transfer.session)?.unannouncedCount ?? 0 > 0 {
            self.announceEnd(of: transfer.session)
        }
    }

    /// The maximum number of list entries in one answer.
    package static let listMax = 10_000
    /// The maximum size of a list in one answer, in bytes: 8 MiB, half of a connection's maximum unsent output.
    private static let listBytesMax = 8 << 20

    private func list(
        _ number: Int32,
        _ state: TransferState?,
        _ limit: Int,
        after sequence: Int64
    ) -> AgentAnswer {
        var found: [TransferID] = []
        try? self.store.list(session: number, after: sequence) { id in
            if let transfer = self.scheduler.transfer(id), state == nil || transfer.state == state { found.append(id) }
            return found.count <= limit
        }
        let list = JSONWriter.object { json in
            var shown = 0
            json.beginArray("transfers")
            for id in found.prefix(limit) where shown == 0 || json.buffer.view.count < Self.listBytesMax {
                self.shown(id).withByteView { json.raw($0) }
                shown += 1
            }
            json.endArray()
            json.member("next", shown < found.count ? "\(found[shown - 1])" : nil)
        }
        return AgentAnswer(200, list)
    }

    private func cancel(_ transfer: Transfer, keeps: Bool, for stream: StreamID) throws(APIError) {
        let id = transfer.id
        guard !self.moving.contains(id) else {
            throw APIError(409, "TakeUnderWay", "Its file is being moved to its place; ask again when that is done.")
        }
        if self.scheduler.cancelled(id, now: self.now) {
            self.stopAttempt(id)
            let details = self.details(id)
            self.change(id) { $0.part = nil }
            if let part = details.part { self.cast(part, of: transfer, keeps: keeps) }
            self.ended(id, name: "cancelled")
        } else {
            self.forget(id)
        }
        self.answerAfterCommit(stream) { self.answer(stream, AgentAnswer(204)) }
    }

    /// Keeps the received part for a later download of the same URL, or removes it.
    private func cast(_ part: PartFile, of transfer: Transfer, keeps: Bool) {
        guard keeps, part.validator != nil, self.resumableParts.count < Self.resumablePartsMax,
            let spec = self.record(transfer.id)?.spec
        else { return self.removeAfterCommit(part.file) }
        let url = HTTPURL.withoutCredentials(spec.url)
        for old in self.resumableParts.values where old.session == transfer.session && old.url == url {
            self.removeResumablePart(old)
        }
        let resumable = ResumablePart(session: transfer.session, url: url, part: part, keptAt: self.now)
        self.resumableParts[part.file] = resumable
        self.writes.append(.putResumablePart(resumable))
    }

    /// The maximum number of parts that are kept for later downloads.
    package static let resumablePartsMax = 1000

    func removeResumablePart(_ resumable: ResumablePart) {
        self.resumableParts[resumable.part.file] = nil
        self.writes.append(.deleteResumablePart(file: resumable.part.file))
        self.removeAfterCommit(resumable.part.file)
    }

    /// Removes an ended transfer and its file.
    func forget(_ id: TransferID) {
        guard let transfer = self.scheduler.transfer(id), transfer.state.hasEnded else { return }
        self.scheduler.forgotten(id)
        self.erase(transfer)
    }

    /// Removes the stored data and the file of a transfer.
    private func erase(_ transfer: Transfer) {
        self.unstored[transfer.id] = nil
        if let name = self.fileNames.removeValue(forKey: transfer.id) { self.removeAfterCommit(name) }
        self.writes.append(.deleteTransfer(sequence: transfer.sequence))
    }

    /// Removes the oldest ended transfers whose files are not needed, to make space for new transfers.
    private func forgetOldest() {
        guard self.scheduler.counts.all > self.scheduler.counts.live else { return }
        let ended = self.scheduler.transfers { transfer in
            transfer.state.hasEnded && (transfer.state != .finished || transfer.isTaken || transfer.kind == .upload)
        }.sorted { $0.sequence < $1.sequence }
        for transfer in ended.prefix(max(1, self.settings.limits.transfersMax / 100)) { self.forget(transfer.id) }
    }

    /// Removes the ended transfers and the kept parts that are older than `untakenFor`, with their files.
    func purge() {
        let before = self.now - self.settings.limits.untakenFor
        for transfer in self.scheduler.transfers(where: { $0.state.hasEnded && $0.endedAt <= before })
        where !self.moving.contains(transfer.id) {
            if transfer.state == .finished, transfer.kind == .download, !transfer.isTaken {
                self.tally.expiredUntaken += 1
                self.log.write(.transferExpired, ["session": self.scheduler.name(of: transfer.session) ?? ""])
            }
            self.forget(transfer.id)
        }
        for resumable in self.resumableParts.values where resumable.keptAt <= before {
            self.removeResumablePart(resumable)
        }
        self.scheduler.compactMoments()
    }

    // MARK: Taking

    private func take(
        _ transfer: Transfer,
        to path: String,
        replaces: Bool,
        for stream: StreamID
    ) throws(APIError) {
        let id = transfer.id
        guard transfer.state == .finished, transfer.kind == .download else {
            let state = transfer.state.name
            throw APIError(409, "NotFinished", "The \(transfer.kind.name) is \(state); a finished download is taken.")
        }
        guard !transfer.isTaken, !self.moving.contains(id), let name = self.fileNames[id] else {
            throw APIError(409, "AlreadyTaken", "Its file was moved to its place, or is being moved; look there.")
        }
        self.moving.insert(id)
        self.change(id) { $0.destination = path }
        let withdraw = {
            self.moving.remove(id)
            self.change(id) { $0.destination = nil }
        }
        self.answerAfterCommit(stream, withdraw: withdraw) { [files = self.files, post = self.post] in
            let move = FileMove(name, to: path, replaces: replaces, in: files)
            self.world.move {
                do throws(StateFiles.TakeFault) {
                    guard try move.step() else { return true }
                    post(.moved(stream, id, nil))
                } catch {
                    post(.moved(stream, id, error))
                }
                return false
            }
        }
    }

    /// Answers after the next commit, even after a failed one. The next start detects whether the file was moved.
    private func answerEvenIfCommitFails(_ answer: @escaping () -> Void) {
        self.effects.append(Effect(run: answer) { _ in answer() })
    }

    func moved(_ id: TransferID, _ fault: StateFiles.TakeFault?, for stream: StreamID?) {
        self.moving.remove(id)
        self.change(id) { details in
            details.destination = nil
            if fault == nil { details.part = nil }
        }
        if fault == nil, self.scheduler.markTaken(id) { self.tally.taken += 1 }
        guard let stream else { return }
        self.answerEvenIfCommitFails {
            if let fault { return self.refuse(stream, Self.refusal(fault)) }
            self.answer(stream, AgentAnswer(200, self.shown(id)))
        }
    }

    private static func refusal(_ fault: StateFiles.TakeFault) -> APIError {
        switch fault {
        case .exists:
            let message = "There is a file already; choose another place, or send \"replace\": true."
            return APIError(409, "FileExists", message)
        case .gone:
            let message = "Its file is not in the state folder any more; cancel the transfer, and add it again."
            return APIError(410, "FileGone", message)
        case .badPath(let words):
            let remedy = "Name the absolute path of an ordinary file, or of none yet, in a folder that exists."
            return APIError(400, "BadPath", "The file cannot be moved there: \(words). \(remedy)")
        case .noSpace(let words):
            return APIError(507, "NoSpace", "Too little space for the file (\(words)); free some there.")
        }
    }
}
