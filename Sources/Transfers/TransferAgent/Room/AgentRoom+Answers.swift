import HTTPTransport
import ServiceManager
import Wire

/// What is shown of sessions and transfers, and who follows them.
extension AgentRoom {
    func sessionList() -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.key("sessions")
        json.beginArray()
        for name in self.book.sessionNames {
            if let number = self.book.number(of: name) { self.session(number).withByteView { json.raw($0) } }
        }
        json.endArray()
        json.endObject()
        return json.buffer.view.array
    }

    func session(_ number: Int32) -> [UInt8] {
        var json = JSONWriter()
        guard let (session, counts, _) = self.book.session(number) else { return Array("null".utf8) }
        json.beginObject()
        json.key("session")
        json.string(self.book.name(of: number) ?? "")
        json.nullable("device", session.device)
        json.nullable("topic", session.topic)
        json.key("discretionary")
        json.bool(session.isDiscretionary)
        json.key("sendsLaunchEvents")
        json.bool(session.sendsLaunchEvents)
        json.key("allowsMetered")
        json.bool(session.allowsMetered)
        json.key("acceptsEarlyAnswers")
        json.bool(session.acceptsEarlyAnswers)
        json.key("requestTimeout")
        json.seconds(session.requestTimeout)
        json.key("resourceTimeout")
        json.seconds(session.resourceTimeout)
        json.key("connectionsPerHost")
        json.integer(session.connectionsPerHost)
        json.key("transfers")
        json.counts(counts)
        json.endObject()
        return json.buffer.view.array
    }

    /// A transfer without its secrets.
    func shown(_ id: TransferID) -> [UInt8] {
        if let entry = self.running[id] { self.look(at: entry.attempt, of: id) }
        guard let (transfer, spec, facts) = self.record(id) else { return Array("null".utf8) }
        let hold = self.book.hold(of: transfer, now: self.now)
        var json = JSONWriter()
        json.beginObject()
        json.key("transfer")
        json.string("\(id)")
        json.key("session")
        json.string(self.book.name(of: transfer.session) ?? "")
        json.key("kind")
        json.string(transfer.kind.name)
        json.key("url")
        json.string(Redirection.withoutCredentials(spec.url))
        json.key("state")
        json.string(transfer.state.name)
        json.key("bytes")
        json.integer(transfer.bytes)
        json.nullable("total", transfer.total < 0 ? nil : transfer.total)
        json.key("attempts")
        json.integer(transfer.attempts)
        json.nullable("status", transfer.status == 0 ? nil : Int64(transfer.status))
        json.key("error")
        if let failure = facts.failure {
            json.beginObject()
            json.key("reason")
            json.string(failure.reason)
            json.key("message")
            json.string(failure.message)
            json.endObject()
        } else {
            json.null()
        }
        json.nullable("why", hold.map { Self.sentence($0, transfer, facts.failure) })
        json.nullable("held", hold?.rawValue)
        json.key("createdAt")
        json.integer(self.clock.wall(transfer.createdAt))
        json.nullable("endedAt", transfer.endedAt == 0 ? nil : self.clock.wall(transfer.endedAt))
        json.nullable("nextAttemptAt", transfer.notBefore > self.now ? self.clock.wall(transfer.notBefore) : nil)
        json.nullable("note", spec.note)
        json.nullable("sha256", transfer.state == .finished ? facts.sha256 : nil)
        json.key("taken")
        json.bool(transfer.isTaken)
        json.endObject()
        return json.buffer.view.array
    }

    /// Why a transfer waits: for a server that never ends its answer, that.
    private static func sentence(
        _ hold: TransferHold,
        _ transfer: Transfer,
        _ failure: TransferFacts.Failure?
    ) -> String {
        guard hold == .backoff, let failure, failure.repeats >= RetryPolicy.repeatsMax, transfer.kind == .download
        else {
            return hold.sentence
        }
        return "The server ended its answer after the same \(transfer.bytes) bytes \(failure.repeats) times, so the "
            + "next attempt waits longer, up to hours. Correct the server, or cancel the transfer."
    }

    func status() -> [UInt8] {
        var json = JSONWriter()
        let conditions = self.machine.conditions
        json.beginObject()
        json.key("version")
        json.string(self.settings.version)
        json.nullable("commit", self.settings.commit)
        json.key("sessions")
        json.integer(self.book.sessionNames.count)
        json.key("transfers")
        json.counts(self.book.counts)
        json.key("running")
        json.integer(self.running.count)
        json.key("metered")
        if let metered = conditions.isMetered { json.bool(metered) } else { json.null() }
        json.key("power")
        json.string(conditions.hasExternalPower ? "external" : "battery")
        json.key("lowPower")
        json.bool(conditions.isLowPower)
        json.key("thermal")
        json.string(self.machine.thermal)
        json.key("network")
        if let network = conditions.hasNetwork { json.bool(network) } else { json.null() }
        json.nullable("gateway", self.settings.gateway.map { Redirection.withoutCredentials($0) })
        json.key("outbox")
        json.beginObject()
        json.key("waiting")
        json.integer(self.outbox.count)
        json.nullable("lastError", self.outbox.values.compactMap(\.lastError).last)
        json.key("delivered")
        json.integer(self.tally.delivered)
        json.endObject()
        json.nullable("storeFault", self.storeFault)
        json.key("stateBytes")
        json.integer(self.files.used)
        json.key("bytesReceived")
        json.integer(self.tally.received)
        json.key("bytesSent")
        json.integer(self.tally.sent)
        json.key("taken")
        json.integer(self.tally.taken)
        json.key("expiredUntaken")
        json.integer(self.tally.expiredUntaken)
        json.endObject()
        return json.buffer.view.array
    }

    // MARK: Listeners

    func listen(_ number: Int32, _ stream: StreamID) {
        self.listeners[stream] = number
        self.book.listenerCame(number)
        var json = JSONWriter()
        json.beginObject()
        json.key("session")
        json.string(self.book.name(of: number) ?? "")
        json.key("transfers")
        json.counts(self.book.session(number)?.counts ?? TransferCounts())
        json.endObject()
        let bytes = AgentEvents.event("state", json.buffer.view.array)
        // An end of the session in the same turn counts as told to it, and is not.
        let withdraw = { self.listenerLeft(stream, hasRead: nil) }
        self.promise(stream, withdraw: withdraw) { self.outputs.append(.begin(stream, bytes)) }
    }

    /// A follower is gone.
    ///
    /// If it was the last one, the session's device is woken for an end that was not read.
    /// - Parameter telling: the number of the last end that it has read; nil for none.
    func listenerLeft(_ stream: StreamID, hasRead telling: Int?) {
        guard let number = self.listeners.removeValue(forKey: stream) else { return }
        if case .wake(let device, _, let finished) = self.book.listenerLeft(number, hasRead: telling) {
            self.wake(device, number, finished)
        }
    }

    /// A follower has read the end with this number.
    func listenerRead(_ stream: StreamID, telling: Int) {
        if let number = self.listeners[stream] { self.book.listenerRead(number, telling: telling) }
    }

    func followers(of number: Int32) -> [StreamID] {
        self.listeners.filter { $0.value == number }.map(\.key)
    }

    /// Tells everybody who follows a session.
    func tell(session number: Int32, _ event: [UInt8]) {
        for stream in self.followers(of: number) { self.outputs.append(.write(stream, event)) }
    }
}
