import HTTPClient
import ServiceManager
import Synchronization

/// The beginning and the end of attempts.
extension AgentRoom {
    /// Starts an attempt of a transfer.
    func begin(_ id: TransferID) {
        guard let (transfer, spec, facts) = self.record(id), !spec.url.isEmpty,
            let session = self.book.session(transfer.session)?.session
        else { return self.fail(id, .interrupted("what is stored of it cannot be read"), hasProgressed: false) }
        self.nextAttempt += 1
        self.tally.attempts += 1
        let number = self.nextAttempt
        let tell = self.tell
        let requestTimeout = spec.requestTimeout ?? session.requestTimeout
        let suffix = String(self.random.next() & 0xFFFF_FFFF, radix: 16)
        let plan = AttemptPlan(
            id: id,
            kind: transfer.kind,
            spec: spec,
            part: facts.part,
            freshFile: "\(id)-\(suffix)",
            bytesMax: min(spec.bytesMax ?? .max, self.settings.limits.fileBytesMax),
            bytesBefore: transfer.bytes,
            silenceSecondsMax: max(1, Int((requestTimeout + 999) / 1000)),
            acceptsEarlyAnswers: session.acceptsEarlyAnswers,
            settings: self.clientSettings(requestTimeout, transfer.kind)
        )
        let attempt = self.world.begin(plan) { tell(.attempt(id, number: number, $0)) }
        self.running[id] = Running(number: number, attempt: attempt, session: transfer.session)
    }

    private func clientSettings(_ requestTimeout: Int64, _ kind: TransferKind) -> HTTPClientSettings {
        var settings = HTTPClientSettings()
        settings.certificateAuthorityFile = self.settings.trust
        settings.certificateFile = self.settings.certificate
        settings.privateKeyFile = self.settings.privateKey
        settings.connectTimeoutMilliseconds = Int(min(requestTimeout, 60_000))
        settings.usesProxiesForLoopback = true
        // If the server does not end TLS properly, that matters only for the body of a download.
        settings.heedsTLSEnd = kind == .download
        settings.proxy = self.settings.proxy
        return settings
    }

    func attemptTold(_ id: TransferID, _ news: AttemptNews) {
        guard let entry = self.running[id] else { return }
        self.look(at: entry.attempt, of: id)
        switch news {
        case .began(let part):
            let before = self.facts(id).part
            self.change(id) { $0.part = part }
            if let before, before.file != part.file { self.removeSoon(before.file) }
        case .synced(let file, let bytes):
            guard var part = self.facts(id).part, part.file == file else { return }
            part.synced = bytes
            part.boot = self.files.boot
            self.change(id) { $0.part = part }
        case .succeeded(let bytes, let status, let sha256):
            self.running[id] = nil
            self.count(entry.attempt)
            self.change(id) { facts in
                facts.failure = nil
                facts.sha256 = sha256
                facts.part?.synced = bytes
            }
            _ = self.book.attemptSucceeded(id, bytes: bytes, status: Int32(clamping: status), now: self.now)
            self.ended(id, name: "finished")
        case .failed(let fault, let hasProgressed):
            self.running[id] = nil
            self.count(entry.attempt)
            self.fail(id, fault, hasProgressed: hasProgressed)
        }
    }

    private func count(_ attempt: AttemptHandle) {
        let bytes = attempt.progressBytes
        switch attempt.plan.kind {
        case .download: self.tally.received += max(0, bytes - attempt.gauge.first.load(ordering: .relaxed))
        case .upload: self.tally.sent += bytes
        }
    }

    /// Updates the displayed progress of a running transfer.
    func look(at attempt: AttemptHandle, of id: TransferID) {
        let status = attempt.gauge.status.load(ordering: .relaxed)
        self.book.progressed(
            id,
            bytes: attempt.progressBytes,
            total: attempt.progressTotal,
            status: status == 0 ? nil : Int32(clamping: status)
        )
    }

    private func fail(_ id: TransferID, _ fault: TransferFault, hasProgressed: Bool) {
        let before = self.facts(id).failure
        let repeats = fault.repeats(after: before?.message, before?.repeats ?? 0)
        let action = self.book.attemptFailed(
            id,
            fault,
            hasProgressed: hasProgressed,
            repeats: repeats,
            now: self.now,
            using: &self.random
        )
        switch action {
        case .retry:
            self.tally.retries += 1
            self.change(id) { $0.failure = .init(reason: fault.reason, message: fault.message, repeats: repeats) }
        case .fail(let cause): self.failed(id, cause)
        case .ignore: ()
        }
    }

    private func failed(_ id: TransferID, _ cause: TransferFault) {
        self.tally.failures[cause.reason, default: 0] += 1
        let session = self.book.transfer(id).flatMap { self.book.name(of: $0.session) } ?? ""
        self.log.write(.transferFailed, ["session": session, "transfer": "\(id)", "reason": cause.reason])
        if let name = self.fileNames[id] { self.removeSoon(name) }
        self.change(id) { facts in
            facts.failure = .init(reason: cause.reason, message: cause.message)
            facts.part = nil
        }
        self.ended(id, name: "failed")
    }

    func deadlinePassed(_ id: TransferID, _ action: Transfer.DeadlinePassedAction) {
        switch action {
        case .fail, .failAndStop:
            self.stopAttempt(id)
            let last = self.facts(id).failure?.message ?? "none has ended."
            self.failed(id, .timedOut(last))
        case .ignore: ()
        }
    }

    /// Stops a running transfer, which then waits. Its progress is kept.
    func hold(_ id: TransferID) {
        self.stopAttempt(id)
        _ = self.book.attemptStopped(id, now: self.now)
    }

    func stopAttempt(_ id: TransferID) {
        guard let entry = self.running.removeValue(forKey: id) else { return }
        self.look(at: entry.attempt, of: id)
        self.count(entry.attempt)
        entry.attempt.stop()
    }

    /// Handles the end of a transfer. Informs followers, or wakes the device after the last transfer of a session.
    func ended(_ id: TransferID, name: String) {
        guard let number = self.book.transfer(id)?.session else { return }
        self.forgetSecrets(of: id)
        if self.listeners.values.contains(number) {
            self.afterCommit { self.tell(session: number, AgentEvents.event(name, self.shown(id))) }
        }
        self.lookAtEnd(of: number)
    }

    /// Informs followers or wakes the device if all transfers of a session have ended.
    func lookAtEnd(of number: Int32) {
        let counts = self.book.session(number)?.counts ?? TransferCounts()
        switch self.book.sessionLooked(at: number) {
        case .tell:
            let idle = AgentEvents.idle(self.book.name(of: number) ?? "", counts)
            let telling = self.book.tellings(of: number)
            self.afterCommit {
                self.tell(session: number, idle)
                for stream in self.followers(of: number) { self.outputs.append(.confirm(stream, telling: telling)) }
            }
        case .wake(let device, _, let finished): self.wake(device, number, finished)
        case .none, .ignore: ()
        }
    }
}

extension AgentRoom {
    /// Removes the secrets of an ended transfer: its headers and the credentials in its URL.
    private func forgetSecrets(of id: TransferID) {
        guard let (transfer, spec, _) = self.record(id) else { return }
        var other = spec
        other.headers = []
        other.url = Redirection.withoutCredentials(spec.url)
        guard other != spec else { return }
        self.writes.append(.changeSpec(sequence: transfer.sequence, other))
    }
}

/// A pending report to the gateway, and the time of its next attempt.
struct Outgoing {
    var entry: OutboxEntry
    var nextAt: Int64
    var failures = 0
    var isOnItsWay = false
    var lastError: String?
}

/// The outbox: the reports to the gateway about sessions whose transfers have ended.
extension AgentRoom {
    /// The maximum number of pending reports. If the outbox is full, the oldest report is dropped.
    package static let outboxMax = 10_000
    /// The maximum number of concurrent requests to the gateway.
    private static let onTheirWayMax = 4

    /// Requests a wake of a session's device. The request is stored together with the end of the last transfer.
    func wake(_ device: String, _ number: Int32, _ finished: Int) {
        guard let session = self.book.name(of: number) else { return }
        // A report that was not sent yet is extended.
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

    func outboxTold(_ sequence: Int64, _ outcome: OutboxEntry.Outcome) {
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
        case .retry(let cause):
            outgoing.failures += 1
            outgoing.lastError = cause
            outgoing.nextAt = self.now + self.settings.retry.wait(failures: outgoing.failures, using: &self.random)
            self.outbox[sequence] = outgoing
            self.log.write(.wakeDelayed, ["session": outgoing.entry.session, "cause": cause])
        }
    }
}
