package import HTTPTransport
import Platform
import ServiceManager
import Wire

/// The objects that are shared by the parts of one loop's handler.
struct LoopParts {
    let loop: EventLoop
    let shared: SharedParts
    let outbox: EngineOutbox
    let answers: AnswerWriter
    let counts: CredentialCounts
    let limits: StreamLimits

    init(_ loop: EventLoop, _ shared: SharedParts) {
        let configuration = shared.configuration
        let maximum = shared.settings.requestsAtEngineMax
        // A database commits many batches concurrently. A lower limit would only slow it down.
        let window =
            configuration.database != nil ? PushWindow(maximum: maximum, minimum: .max) : PushWindow(maximum: maximum)
        self.loop = loop
        self.shared = shared
        self.outbox = EngineOutbox(shared.engine, window: window, events: shared.services.events)
        self.answers = AnswerWriter(loop)
        self.counts = CredentialCounts(
            connections: shared.credentials,
            workerStreams: shared.workerStreams,
            rates: shared.rates,
            tally: shared.tally
        )
        self.limits = StreamLimits(loop, beginsWithOne: configuration.appleStreamLimit)
    }
}

/// Passes the requests of one loop, and the engine's effects on the loop, to the responsible parts.
package final class LoopHandler: RequestHandler {
    private let parts: LoopParts
    private let admission: CallerAdmission
    /// The performer of fault rules; nil except in `wakegate dev`.
    private let faults: FaultPerformer?
    private let pushes: PushIntake
    private let workers: WorkerFeed
    private let live: LiveFeed
    private let events: EventFeed
    private let router: OperationRouter
    private let pulse: Pulse
    private var callers: CallerCheck
    private let callerNetworks: [CallerNetwork]
    private var effects = EffectBatch()
    private var goAways = GoAwayRecord()
    private var countedConnections = 0

    package init(loop: EventLoop, shared: SharedParts) {
        let configuration = shared.configuration
        self.pulse = shared.loopPulses[loop.index]
        self.callers = CallerCheck(
            addresses: configuration.admin.addresses + configuration.plain.addresses,
            takesNetworkNames: !configuration.callerNetworks.isEmpty
        )
        self.callerNetworks = configuration.callerNetworks
        let parts = LoopParts(loop, shared)
        self.parts = parts
        self.admission = CallerAdmission(parts)
        self.faults = shared.services.faults.map { FaultPerformer($0, parts) }
        self.workers = WorkerFeed(parts)
        self.live = LiveFeed(parts, self.admission)
        self.events = EventFeed(parts, self.admission)
        self.pushes = PushIntake(parts, self.admission, self.faults)
        self.router = OperationRouter(parts, self.admission, self.workers, self.live, self.events)
        shared.mailboxes.loops[loop.index].attach { [loop] in loop.wake() }
    }

    // MARK: Requests

    package func bodyBytesMax(for request: Request) -> Int {
        guard Self.isPush(request.path) else {
            return self.router.bodyBytesMax(of: request, self.parts.shared.roles[request.listener])
        }
        return self.pushes.bodyBytesMax(of: request)
    }

    package func requestReceived(_ request: Request) {
        let role = self.parts.shared.roles[request.listener]
        if let unknownPeer = self.unknownPeer(request) {
            self.refuse(request, from: unknownPeer)
        } else if role.isCleartext, !self.callers.admits(request, on: role) {
            self.refuseCaller(request)
        } else if request.shortage != .none {
            self.refuseForShortage(request, role)
        } else if Operation.isOfProviders(path: request.path, on: role) {
            self.pushes.push(request)
        } else {
            self.router.route(request, role)
        }
        if self.goAways.isDraining, !self.workers.carriesStreams(request.stream.connection) {
            self.sendGoAway(request.stream.connection)
        }
    }

    package func headerListTooLarge(_ request: Request) -> Bool {
        let role = self.parts.shared.roles[request.listener]
        guard self.unknownPeer(request) == nil, !role.isCleartext || self.callers.admits(request, on: role) else {
            return false
        }
        let isOfProviders = Operation.isOfProviders(path: request.path, on: role)
        let apnsID = isOfProviders ? self.pushes.apnsID(of: request) : nil
        self.parts.answers.answer(request.stream, .headerListTooLarge, apnsID)
        return true
    }

    /// Returns the network of a caller that is not in the permitted networks. Returns nil if the caller is permitted,
    /// or if networks are not restricted.
    private func unknownPeer(_ request: Request) -> ClientNetwork? {
        guard !self.callerNetworks.isEmpty, let client = self.parts.loop.network(of: request.stream.connection),
            !client.isThisMachine, !self.callerNetworks.contains(where: { $0.contains(client) })
        else { return nil }
        return client
    }

    private func refuse(_ request: Request, from unknownPeer: ClientNetwork) {
        let known = self.callerNetworks.map(\.text).joined(separator: ", ")
        let message =
            "\(unknownPeer.text) may not reach this gateway: it is for this machine and \(known). Start it with "
            + "--network \(unknownPeer.text) as well."
        let apnsID = Self.isPush(request.path) ? self.pushes.reject(request, .forbidden) : nil
        self.parts.answers.answer(request.stream, .forbidden(message), apnsID)
    }

    /// Refuses a request from a foreign web page.
    private func refuseCaller(_ request: Request) {
        guard !Self.isPush(request.path) else { return self.pushes.refuse(request, .forbidden) }
        self.parts.answers.answer(request.stream, .foreignPage)
    }

    /// Refuses a request that exceeded a memory limit. This client, or all clients together, have sent parts of too
    /// many requests.
    private func refuseForShortage(_ request: Request, _ role: ListenerRole) {
        let isOwnFault = request.shortage == .connection
        guard Operation.isOfProviders(path: request.path, on: role) else {
            return self.parts.answers.answer(request.stream, isOwnFault ? .tooManyRequests : .overloaded)
        }
        // Most of the requests in progress will arrive completely within a second.
        self.pushes.refuse(request, isOwnFault ? .tooManyRequests : .serviceUnavailable, retryAfterSeconds: 1)
    }

    private static func isPush(_ path: ByteView) -> Bool {
        path.starts(with: "/3/device")
    }

    // MARK: Streams and connections

    package func streamClosed(_ stream: StreamID) {
        self.faults?.effects.streamClosed(stream)
        self.live.streamClosed(stream)
        self.events.streamClosed(stream)
        if self.workers.streamClosed(stream) { self.sendGoAway(stream.connection) }
    }

    package func connectionClosed(_ connection: ConnectionID) {
        self.workers.connectionClosed(connection)
        self.goAways.connectionClosed(connection)
        self.parts.limits.connectionClosed(connection)
        self.pushes.connectionClosed(connection)
        self.admission.connectionClosed(connection)
        self.faults?.effects.connectionClosed(connection)
    }

    package func certificateShown(_ certificate: ClientCertificate, on connection: ConnectionID) {
        self.admission.certificateShown(certificate, on: connection)
    }

    package func handshakeFailed(_ cause: String) { self.parts.shared.log.write(.handshakeFailed, ["cause": cause]) }

    package func streamDrained(_ stream: StreamID) {
        self.workers.drained(stream)
        self.events.drained(stream)
    }

    // MARK: Turns

    package func turnEnded() {
        self.parts.outbox.handOver { self.parts.loop.takingWakes($0) }
        // The answers that the engine gave immediately may have produced commands. These are handed over, too.
        self.parts.outbox.handOver()
        self.pauseOrResume()
        let change = self.parts.loop.connectionCount - self.countedConnections
        guard change != 0 || self.goAways.isDraining else { return }
        self.countedConnections += change
        self.parts.shared.connectionsChanged(by: change)
    }

    /// Pauses the loop's reading while the engine has the maximum number of this loop's pushes. Resumes it afterwards,
    /// or when the engine is stuck: peers must not be ended for silence because nothing of theirs is read.
    private func pauseOrResume() {
        let moment = self.parts.loop.now
        let count = self.parts.outbox.window.count(now: moment)
        let isFull = self.parts.outbox.pushesAtEngine >= count
        let isPaused = self.parts.outbox.window.turnEnded(isFull: isFull, now: moment)
        guard isPaused != self.parts.loop.isReadingPaused else { return }
        self.parts.loop.isReadingPaused = isPaused
        let now = SystemClock.monotonicNanoseconds
        guard isPaused else { return self.parts.outbox.window.resumed(now: now) }
        self.parts.outbox.window.paused(atLimit: count, now: now)
        self.parts.shared.tally.met(.requestsAtEngineMax)
    }

    package func woken() {
        self.pulse.beat()
        let mailbox = self.parts.shared.mailboxes.loops[self.parts.loop.index]
        if let settings = mailbox.take(into: &self.effects) { self.set(settings) }
        self.effects.handOver(pushAnswer: { self.pushes.answer($0) }, other: { self.take($0) })
        self.effects.removeAll()
        self.events.woken()
    }

    /// Applies the settings of a new configuration.
    private func set(_ settings: LoopSettings) {
        self.parts.loop.setLimits(settings.transport)
        self.parts.outbox.window.maximum = settings.requestsAtEngineMax
        self.pushes.setRules(settings.rules)
    }

    /// Performs an effect of the engine on this loop.
    private func take(_ effect: Effect) {
        switch effect {
        case .pushAnswer(let reply): self.pushes.answer(reply)
        case .answer(let address, let outcome):
            self.workers.refused(StreamID(address))
            self.parts.answers.answer(StreamID(address), outcome)
        case .asked(let request): self.parts.outbox.append(.request(request))
        case .subscribed(let address, let warning):
            let reported = warning?.write(to: self.parts.shared.log) == true ? warning : nil
            if self.workers.subscribed(address, reported) { self.sendGoAway(StreamID(address).connection) }
        case .wake(let address, let wake): self.workers.deliver(wake, to: address)
        case .expiring(let address, let wake, let deadline, let timeLeft):
            self.workers.expiring(wake, deadline: deadline, timeLeft: timeLeft, on: address)
        case .expired(let address, let wake, let reason): self.workers.expired(wake, reason, on: address)
        case .conditions(let address, let device, let conditions):
            self.workers.conditionsChanged(conditions, of: device, on: address)
        case .released(let address, _):
            if self.workers.released(from: address) { self.sendGoAway(StreamID(address).connection) }
        case .drained(let address):
            if self.workers.isOpen(StreamID(address)) { self.end(StreamID(address)) }
        case .draining: self.startDraining()
        }
    }

    package func secondPassed(_ monotonicMilliseconds: Int64) {
        self.workers.keepAlive(now: monotonicMilliseconds)
        self.live.secondPassed()
        self.events.secondPassed(monotonicMilliseconds)
        self.faults?.restoreCleared()
        for connection in self.parts.counts.takeExcess() {
            self.parts.loop.goAway(connection, debugData: ByteView("{\"reason\":\"TooManyRequests\"}"))
        }
        self.admission.endConnectionsWithBadCertificates()
        for stream in self.workers.streamsWithoutProof(by: self.admission) { self.end(stream) }
        if self.goAways.isDraining { self.endSilentConnections() }
    }

    package func alarmRang(_ monotonicMilliseconds: Int64) { self.faults?.performDue(now: monotonicMilliseconds) }

    /// Ends a worker's stream. The bytes that were already written to it are still sent.
    private func end(_ stream: StreamID) {
        self.streamClosed(stream)
        self.parts.loop.finish(stream)
    }

    // MARK: Shutdown

    /// Begins the shutdown of this loop. By then, the engine's last launch has reached the loop.
    private func startDraining() {
        self.goAways.begin()
        self.workers.startDraining()
        self.faults?.startDraining()
        var idle: [ConnectionID] = []
        self.parts.loop.forEachConnection { if !self.workers.holdsWakes($0) { idle.append($0) } }
        for connection in idle { self.sendGoAway(connection) }
    }

    /// Sends a GOAWAY to every remaining connection, because the time for the shutdown has ended.
    package func loopEnds() {
        self.parts.loop.forEachConnection { self.parts.loop.goAway($0, debugData: Self.shutdown, inFlight: .dropped) }
    }

    private static var shutdown: ByteView { ByteView("{\"reason\":\"Shutdown\"}") }

    /// Ends the connections that were opened during the shutdown and have sent no request for a second, and those that
    /// have not begun HTTP in that time.
    private func endSilentConnections() {
        self.parts.loop.closeHandshakes(olderThan: 1000)
        var silent: [ConnectionID] = []
        self.parts.loop.forEachConnection { connection in
            guard !self.workers.carriesStreams(connection), self.goAways.isSilent(connection) else { return }
            silent.append(connection)
        }
        for connection in silent { self.sendGoAway(connection) }
    }

    /// Ends a connection's streams, and ends the connection when its open requests are answered. GOAWAY comes last,
    /// because some clients do not read anything after it.
    private func sendGoAway(_ connection: ConnectionID) {
        self.goAways.goAwaySent(to: connection)
        self.live.end(connection)
        self.events.end(connection)
        self.workers.end(connection)
        self.parts.loop.goAway(connection, debugData: Self.shutdown, inFlight: .answeredFirst)
    }
}
