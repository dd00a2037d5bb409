import HTTPClient
import HTTPTransport
import Platform
import ServiceManager
import Wire

/// Answers about sessions and transfers, and the followers of sessions.
extension AgentEngine {
    func sessionList() -> [UInt8] {
        JSONWriter.object { json in
            json.beginArray("sessions")
            for name in self.scheduler.sessionNames {
                if let number = self.scheduler.number(of: name) { self.session(number).withByteView { json.raw($0) } }
            }
            json.endArray()
        }
    }

    func session(_ number: Int32) -> [UInt8] {
        guard let (session, counts, _) = self.scheduler.session(number) else { return Array("null".utf8) }
        return JSONWriter.object { json in
            json.member("session", self.scheduler.name(of: number) ?? "")
            session.write(to: &json)
            json.member("requestTimeout", seconds: session.requestTimeout)
            json.member("resourceTimeout", seconds: session.resourceTimeout)
            json.member("transfers", counts)
        }
    }

    /// Returns a transfer as JSON, without its secrets.
    func shown(_ id: TransferID) -> [UInt8] {
        if let entry = self.running[id] { self.look(at: entry.attempt, of: id) }
        guard let (transfer, spec, details) = self.record(id) else { return Array("null".utf8) }
        let hold = self.scheduler.hold(of: transfer, now: self.now)
        return JSONWriter.object { json in
            json.member("transfer", "\(id)")
            json.member("session", self.scheduler.name(of: transfer.session) ?? "")
            json.member("kind", transfer.kind.name)
            json.member("url", HTTPURL.withoutCredentials(spec.url))
            json.member("state", transfer.state.name)
            json.member("bytes", transfer.bytes)
            json.member("total", transfer.total < 0 ? nil : transfer.total)
            json.member("attempts", transfer.attempts)
            json.member("status", transfer.status == 0 ? nil : Int64(transfer.status))
            json.key("error")
            if let failure = details.failure {
                json.beginObject()
                json.member("reason", failure.reason)
                json.member("message", failure.message)
                json.endObject()
            } else {
                json.null()
            }
            json.member("why", hold.map { self.sentence($0, transfer, details.failure) })
            json.member("held", hold?.rawValue)
            json.member("createdAt", self.clock.wall(transfer.createdAt))
            json.member("endedAt", transfer.endedAt == 0 ? nil : self.clock.wall(transfer.endedAt))
            json.member("nextAttemptAt", transfer.notBefore > self.now ? self.clock.wall(transfer.notBefore) : nil)
            json.member("note", spec.note)
            json.member("sha256", transfer.state == .finished ? details.sha256 : nil)
            json.member("taken", transfer.isTaken)
        }
    }

    /// Returns a sentence with the reason why a transfer waits. It also states the earliest time to continue, a hold of
    /// the session, and a server that never completes its answer.
    private func sentence(
        _ hold: TransferHold,
        _ transfer: Transfer,
        _ failure: TransferDetails.Failure?
    ) -> String {
        let isTimed = transfer.notBefore > self.now
        let moment = isTimed ? WallTime.textRoundedUp(self.clock.wall(transfer.notBefore)) : nil
        var text = hold.sentence(until: moment)
        if hold == .backoff, let failure, failure.repeats >= RetryPolicy.repeatsMax, transfer.kind == .download {
            text =
                "The server ended its answer after the same \(transfer.bytes) bytes \(failure.repeats) times, so the "
                + "next attempt waits longer, until \(moment ?? "later"). Correct the server, or cancel the transfer."
        }
        let session = self.scheduler.session(transfer.session)?.session
        guard isTimed, let other = session.flatMap({ self.scheduler.hold(of: $0) }) else { return text }
        return "\(text) Besides: \(other.sentence())"
    }

    func status() -> [UInt8] {
        let conditions = self.machine.conditions
        return JSONWriter.object { json in
            json.member("version", self.settings.version)
            json.member("commit", self.settings.commit)
            json.member("sessions", self.scheduler.sessionNames.count)
            json.member("transfers", self.scheduler.counts)
            json.member("running", self.running.count)
            json.member("metered", conditions.isMetered)
            json.member("constrained", conditions.isConstrained)
            json.member("power", conditions.hasExternalPower ? "external" : "battery")
            json.member("lowPower", conditions.isLowPower)
            json.member("thermal", self.machine.thermal)
            json.member("network", conditions.hasNetwork)
            json.member("gateway", self.settings.gateway.map { HTTPURL.withoutCredentials($0) })
            json.beginObject("outbox")
            json.member("waiting", self.outbox.count)
            json.member("lastError", self.outbox.values.compactMap(\.lastError).last)
            json.member("delivered", self.tally.delivered)
            json.endObject()
            json.member("storeFault", self.storeFault)
            json.member("stateBytes", self.files.used)
            json.member("bytesReceived", self.tally.received)
            json.member("bytesSent", self.tally.sent)
            json.member("taken", self.tally.taken)
            json.member("expiredUntaken", self.tally.expiredUntaken)
        }
    }

    // MARK: Followers

    func listen(_ number: Int32, _ stream: StreamID) {
        self.listeners[stream] = number
        self.scheduler.listenerCame(number)
        let state = JSONWriter.object { json in
            json.member("session", self.scheduler.name(of: number) ?? "")
            json.member("transfers", self.scheduler.session(number)?.counts ?? TransferCounts())
        }
        let bytes = AgentEvents.event("state", state)
        // If the session ends in the same turn, its end counts as announced to this follower. If the stream cannot
        // begin, this must be reverted.
        let withdraw = { self.listenerLeft(stream, hasRead: nil) }
        self.answerAfterCommit(stream, withdraw: withdraw) { self.outputs.append(.begin(stream, bytes)) }
    }

    /// Handles the disconnection of a follower. If it was the last one and has not read an announced end, wakes the
    /// session's device.
    ///
    /// - `announcement`: the number of the last announcement that the follower has read; nil if it read none.
    func listenerLeft(_ stream: StreamID, hasRead announcement: Int?) {
        guard let number = self.listeners.removeValue(forKey: stream) else { return }
        if case .wake(let device, let finished) = self.scheduler.listenerLeft(number, hasRead: announcement) {
            self.wake(device, number, finished)
        }
    }

    /// Records that a follower has read the announcement with this number.
    func listenerRead(_ stream: StreamID, announcement: Int) {
        if let number = self.listeners[stream] { self.scheduler.listenerRead(number, announcement: announcement) }
    }

    func followers(of number: Int32) -> [StreamID] {
        self.listeners.filter { $0.value == number }.map(\.key)
    }

    /// Sends an event to all followers of a session.
    func sendEvent(toSession number: Int32, _ event: [UInt8]) {
        for stream in self.followers(of: number) { self.outputs.append(.write(stream, event)) }
    }
}

/// The JSON answers and events for callers.
enum AgentEvents {
    /// Returns one event of a stream. `data` must be JSON without line feeds.
    static func event(_ name: String, _ data: [UInt8]) -> [UInt8] {
        Array("event: \(name)\ndata: ".utf8) + data + [0x0A, 0x0A]
    }

    static func progress(_ id: TransferID, _ bytes: Int64, _ total: Int64) -> [UInt8] {
        let data = JSONWriter.object { json in
            json.member("transfer", "\(id)")
            json.member("bytes", bytes)
            json.member("total", total < 0 ? nil : total)
        }
        return self.event("progress", data)
    }

    static func idle(_ session: String, _ counts: TransferCounts) -> [UInt8] {
        let data = JSONWriter.object { json in
            json.member("session", session)
            json.member("finished", counts[.finished])
            json.member("failed", counts[.failed])
        }
        return self.event("idle", data)
    }
}

extension JSONWriter {
    mutating func member(_ name: StaticString, _ counts: TransferCounts) {
        self.beginObject(name)
        for state in TransferState.allCases {
            self.key(state.name)
            self.integer(counts[state])
        }
        self.endObject()
    }

    /// Writes a time in milliseconds as a number of seconds.
    mutating func member(_ name: StaticString, seconds milliseconds: Int64) {
        self.key(name)
        if milliseconds % 1000 == 0 {
            self.integer(milliseconds / 1000)
        } else {
            self.number(Double(milliseconds) / 1000)
        }
    }
}

/// The metrics for Prometheus.
extension AgentEngine {
    func metrics() -> [UInt8] {
        var text = MetricsText()
        func values(_ name: String, _ kind: Metric.Kind, by label: String, _ help: String, _ values: [(String, Int)]) {
            let metric = Metric("wakegate_transfers_\(name)", kind, by: [label], help)
            text.values(metric, values.map { ($0, Int64($1)) })
        }
        func value(_ name: String, _ kind: Metric.Kind, _ help: String, _ value: some BinaryInteger) {
            text.value(Metric("wakegate_transfers_\(name)", kind, help), Int64(value))
        }
        let (counts, tally) = (self.scheduler.counts, self.tally)
        value("sessions", .gauge, "Sessions that are remembered.", self.scheduler.sessionNames.count)
        let states = TransferState.allCases.map { ($0.name, counts[$0]) }
        values("transfers", .gauge, by: "state", "Transfers that are remembered, by state.", states)
        var asked = TransferSession()
        asked.isDiscretionary = true
        let hold = self.machine.conditions.hold(of: asked)
        let holds = [TransferHold.power, .lowPower, .thermal, .metered, .constrained]
        let causes = holds.map { ($0.rawValue, hold == $0 ? 1 : 0) }
        values("held", .gauge, by: "cause", "Whether discretionary transfers would wait, by cause.", causes)
        value("attempts_total", .counter, "Attempts that were begun.", tally.attempts)
        value("retries_total", .counter, "Attempts that failed and are made again.", tally.retries)
        let reasons = TransferFault.reasons.map { ($0, tally.failures[$0] ?? 0) }
        values("failures_total", .counter, by: "reason", "Transfers that have failed, by reason.", reasons)
        value("received_bytes_total", .counter, "Bytes that downloads received, as attempts ended.", tally.received)
        value("sent_bytes_total", .counter, "Bytes that uploads sent, as attempts ended.", tally.sent)
        value("taken_total", .counter, "Files that were taken.", tally.taken)
        value("expired_untaken_total", .counter, "Files that no client took in time.", tally.expiredUntaken)
        value("state_bytes", .gauge, "Bytes of the files in the state folder.", self.files.used)
        let waiting = self.outbox.count
        value("outbox_waiting", .gauge, "Finished sessions not yet reported to the gateway.", waiting)
        value("wakes_delivered_total", .counter, "Finished sessions that the gateway took.", tally.delivered)
        let refused = tally.refusedWakes
        value("wakes_refused_total", .counter, "Finished sessions that the gateway refused for good.", refused)
        value("commits_total", .counter, "Commits to the state folder.", tally.commits)
        value("failed_commits_total", .counter, "Commits that failed, and were tried again.", tally.failedCommits)
        value("listeners", .gauge, "Streams of events.", self.listeners.count)
        let resident = ProcessFigures.read().residentBytes
        value("resident_bytes", .gauge, "Memory of the process that is not swapped out.", resident)
        let startedAt = self.startedAt
        value("start_time_milliseconds", .gauge, "When the agent started, in milliseconds since 1970.", startedAt)
        return text.buffer.view.array
    }
}
