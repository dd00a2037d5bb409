import HTTPClient
import ServiceManager
import Synchronization

/// The beginning and the end of attempts.
extension AgentEngine {
    /// Starts an attempt of a transfer.
    func begin(_ id: TransferID) {
        guard let (transfer, spec, details) = self.record(id), !spec.url.isEmpty,
            let session = self.scheduler.session(transfer.session)?.session
        else { return self.fail(id, .interrupted("what is stored of it cannot be read"), hasProgressed: false) }
        self.nextAttempt += 1
        self.tally.attempts += 1
        let number = self.nextAttempt
        let post = self.post
        let requestTimeout = spec.requestTimeout ?? session.requestTimeout
        let suffix = String(self.random.next() & 0xFFFF_FFFF, radix: 16)
        let plan = AttemptPlan(
            id: id,
            kind: transfer.kind,
            spec: spec,
            part: details.part,
            freshFile: "\(id)-\(suffix)",
            bytesMax: min(spec.bytesMax ?? .max, self.settings.limits.fileBytesMax),
            bytesBefore: transfer.bytes,
            silenceSecondsMax: max(1, Int((requestTimeout + 999) / 1000)),
            acceptsEarlyAnswers: session.acceptsEarlyAnswers,
            settings: self.clientSettings(requestTimeout, transfer.kind)
        )
        let attempt = self.world.begin(plan) { post(.attempt(id, number: number, $0)) }
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

    func attemptReported(_ id: TransferID, _ news: AttemptNews) {
        guard let entry = self.running[id] else { return }
        self.look(at: entry.attempt, of: id)
        switch news {
        case .began(let part):
            let before = self.details(id).part
            self.change(id) { $0.part = part }
            if let before, before.file != part.file { self.removeAfterCommit(before.file) }
        case .synced(let file, let bytes):
            guard var part = self.details(id).part, part.file == file else { return }
            part.synced = bytes
            part.boot = self.files.boot
            self.change(id) { $0.part = part }
        case .succeeded(let bytes, let status, let sha256):
            self.running[id] = nil
            self.count(entry.attempt)
            self.change(id) { details in
                details.failure = nil
                details.sha256 = sha256
                details.part?.synced = bytes
            }
            self.scheduler.attemptSucceeded(id, bytes: bytes, status: Int32(clamping: status), now: self.now)
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
        self.scheduler.progressed(
            id,
            bytes: attempt.progressBytes,
            total: attempt.progressTotal,
            status: status == 0 ? nil : Int32(clamping: status)
        )
    }

    private func fail(_ id: TransferID, _ fault: TransferFault, hasProgressed: Bool) {
        let before = self.details(id).failure
        let repeats = fault.repeats(after: before?.message, before?.repeats ?? 0)
        let action = self.scheduler.attemptFailed(
            id,
            fault,
            isLocal: self.scheduler.transfer(id).flatMap { HTTPURL($0.host)?.isLoopback } ?? false,
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
        let session = self.scheduler.transfer(id).flatMap { self.scheduler.name(of: $0.session) } ?? ""
        self.log.write(.transferFailed, ["session": session, "transfer": "\(id)", "reason": cause.reason])
        if let name = self.fileNames[id] { self.removeAfterCommit(name) }
        self.change(id) { details in
            details.failure = .init(reason: cause.reason, message: cause.message)
            details.part = nil
        }
        self.ended(id, name: "failed")
    }

    func deadlinePassed(_ id: TransferID) {
        let attempt = self.running[id]?.attempt
        self.stopAttempt(id)
        var last = self.details(id).failure?.message ?? "none has ended."
        if let attempt, attempt.gauge.awaitsFile.load(ordering: .relaxed) {
            last = TransferFault.unresponsive(attempt.plan.spec.file).message
        }
        self.failed(id, .timedOut(last))
    }

    /// Stops a running transfer, which then waits. Its progress is kept.
    func hold(_ id: TransferID) {
        self.stopAttempt(id)
        self.scheduler.attemptStopped(id, now: self.now)
    }

    func stopAttempt(_ id: TransferID) {
        guard let entry = self.running.removeValue(forKey: id) else { return }
        self.look(at: entry.attempt, of: id)
        self.count(entry.attempt)
        entry.attempt.stop()
    }

    /// Handles the end of a transfer. Informs followers, or wakes the device after the last transfer of a session.
    func ended(_ id: TransferID, name: String) {
        guard let number = self.scheduler.transfer(id)?.session else { return }
        self.forgetSecrets(of: id)
        if self.listeners.values.contains(number) {
            self.afterCommit { self.sendEvent(toSession: number, AgentEvents.event(name, self.shown(id))) }
        }
        self.announceEnd(of: number)
    }

    /// Informs followers or wakes the device if all transfers of a session have ended.
    func announceEnd(of number: Int32) {
        let counts = self.scheduler.session(number)?.counts ?? TransferCounts()
        switch self.scheduler.announceEnd(of: number) {
        case .announce:
            let idle = AgentEvents.idle(self.scheduler.name(of: number) ?? "", counts)
            let announcement = self.scheduler.announcementCount(of: number)
            self.afterCommit {
                self.sendEvent(toSession: number, idle)
                for stream in self.followers(of: number) {
                    self.outputs.append(.confirm(stream, announcement: announcement))
                }
            }
        case .wake(let device, let finished): self.wake(device, number, finished)
        case .ignore: ()
        }
    }
}

extension AgentEngine {
    /// Removes the secrets of an ended transfer: its headers and the credentials in its URL.
    private func forgetSecrets(of id: TransferID) {
        guard let (transfer, spec, _) = self.record(id) else { return }
        var other = spec
        other.headers = []
        other.url = HTTPURL.withoutCredentials(spec.url)
        guard other != spec else { return }
        self.writes.append(.changeSpec(sequence: transfer.sequence, other))
    }
}

/// A pending report to the gateway, and the time of its next attempt.
struct Outgoing {
    var entry: OutboxEntry
    var nextAt: Int64
    var failures = 0
    var isSending = false
    var lastError: String?
}

/// The outbox: the reports to the gateway about sessions whose transfers have ended.
extension AgentEngine {
    /// The maximum number of pending reports. If the outbox is full, the oldest report is dropped.
    package static let outboxMax = 10_000
    /// The maximum number of concurrent requests to the gateway.
    private static let sendingMax = 4

    /// Requests a wake of a session's device. The request is stored together with the end of the last transfer.
    func wake(_ device: String, _ number: Int32, _ finished: Int) {
        guard let session = self.scheduler.name(of: number) else { return }
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

    /// The number of reports that may be sent to the gateway now.
    private var freeSendings: Int {
        self.settings.gateway == nil ? 0 : Self.sendingMax - self.outbox.values.count { $0.isSending }
    }

    /// The time of the next report to the gateway; nil if none waits, or if none may be sent now.
    var nextSending: Int64? {
        guard self.freeSendings > 0 else { return nil }
        return self.outbox.values.lazy.filter { !$0.isSending }.map(\.nextAt).min()
    }

    func sendOutbox() {
        var freeSendings = self.freeSendings
        guard freeSendings > 0 else { return }
        for sequence in self.outbox.keys.sorted() {
            guard freeSendings > 0 else { return }
            guard let waiting = self.outbox[sequence], !waiting.isSending, waiting.nextAt <= self.now else { continue }
            freeSendings -= 1
            self.outbox[sequence]?.isSending = true
            if !waiting.entry.wasTried {
                self.outbox[sequence]?.entry.wasTried = true
                var entry = waiting.entry
                entry.wasTried = true
                self.writes.append(.putOutbox(entry))
            }
            let entry = waiting.entry
            self.afterCommit { [world = self.world, post = self.post] in
                world.send(entry) { post(.outbox(sequence: sequence, $0)) }
            }
        }
    }

    func outboxReported(_ sequence: Int64, _ outcome: OutboxEntry.Outcome) {
        guard var outgoing = self.outbox[sequence] else { return }
        outgoing.isSending = false
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
