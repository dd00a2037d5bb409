import APNSProtocol
import Access
import Bytes
import DeviceEngine
import EngineRoom
import EventLog
package import HTTPTransport
import Platform
import Settings
import WakeDispatch

/// Takes the requests of one loop: checks them, hands them to the engine in one batch a turn, and brings the engine's
/// answers back.
package final class LoopHandler: RequestHandler {
    /// Silence on a worker's stream, in milliseconds, after which a comment is sent.
    static let keepAliveInterval: Int64 = 15_000
    /// Seconds between PINGs of a connection that carries a wake in flight, and of one that only subscribes.
    static let pingSeconds = (inFlight: 5, subscribed: 30)
    /// An open worker's stream.
    struct OpenStream {
        /// What its worker showed; nil when nobody asked.
        let caller: ShownProof?
        /// When something was last written to it, by the monotonic clock in milliseconds.
        var lastWrite = SystemClock.monotonic
        /// The wakes it holds.
        var wakes = 0
        var isPaused = false
    }

    /// A connection that carries workers' streams.
    struct WorkerConnection {
        var streams: Set<StreamID> = []
        /// The wakes its streams hold.
        var wakes = 0
    }

    let loop: EventLoop
    let shared: SharedParts
    var batch = CommandBatch()
    let response = Response()
    var body = ByteBuffer()
    /// Empty but while an answer, or an event for a worker's stream, is written.
    var writer = JSONWriter()
    /// The trace of the push that is being looked at.
    var traceBytes = ByteBuffer()
    var streams: [StreamID: OpenStream] = [:]
    var workerConnections: [ConnectionID: WorkerConnection] = [:]
    /// The streams of those who watch.
    var liveStreams: [StreamID: LiveStream] = [:]
    /// What workers showed whose subscriptions are at the engine.
    var subscribers: [StreamID: ShownProof] = [:]
    /// Who may do what.
    var authorization: Authorization
    /// Nil when providers are not asked for proof.
    var providers: ProviderGate?
    /// Whether connections begin with one stream.
    let beginsWithOneStream: Bool
    /// The connections that began with one stream, and may have more by now.
    var liftedConnections: Set<ConnectionID> = []
    /// Nil where there are no fault rules, which is everywhere but in `wakegate dev`.
    let faults: LoopFaults?
    /// The ids of the bearer tokens that connections are counted under.
    var bearers: [ConnectionID: String] = [:]
    /// Whom workers' streams are counted under, from the moment they are asked for.
    var streamHolders: [StreamID: StreamHolder] = [:]
    /// The connections that are too many of their credentials, and have been told so.
    var excessConnections: Set<ConnectionID> = []
    var settings: LoopSettings
    private let pulse: Pulse
    private var callers: CallerCheck
    private var effects = EffectBatch()
    private var unique: UniqueBits
    private(set) var isDraining = false
    /// Connections without a wake that were seen during a shutdown: true once they were told to end.
    private var goodbyes: [ConnectionID: Bool] = [:]
    var requestsAtEngine = 0
    private var countedConnections = 0

    package init(loop: EventLoop, shared: SharedParts) {
        self.loop = loop
        self.shared = shared
        self.authorization = Authorization(
            tokens: shared.tokens,
            certificates: shared.clientTrusts.map {
                ClientCertificates($0, environment: shared.configuration.environment)
            }
        )
        self.providers = shared.providerKeys.map { [environment = shared.configuration.environment] keys in
            ProviderGate(keys, environment: environment, credentials: shared.credentials)
        }
        self.pulse = shared.loopPulses[loop.index]
        self.settings = shared.settings
        self.beginsWithOneStream = shared.configuration.appleStreamLimit
        self.faults = shared.services.faults.map { LoopFaults($0) }
        let cleartext = shared.configuration.admin.addresses + shared.configuration.plain.addresses
        self.callers = CallerCheck(addresses: cleartext)
        var random = RandomBits()
        self.unique = UniqueBits(seed: random.pair())
        shared.mailboxes.loops[loop.index].attach { [loop] in loop.wake() }
    }

    // MARK: Requests

    package func bodyBytesMax(for request: Request) -> Int {
        guard Self.isPush(request.path) else {
            return self.bodyBytesMax(of: request, self.shared.roles[request.listener])
        }
        // Only voip pushes may be larger; nothing else of the request matters yet.
        for index in 0..<request.headerCount {
            let field = request.header(at: index)
            if field.name == "apns-push-type" { return PushPayload.bytesMax(type: PushType(field.value)) }
        }
        return PushPayload.bytesMax(type: nil)
    }

    package func requestReceived(_ request: Request) {
        let role = self.shared.roles[request.listener]
        if role.isCleartext, !self.callers.admits(request, isForPage: role == .admin && Self.isPage(request.path)) {
            self.refuseCaller(request)
        } else if request.shortage != .none {
            self.refuseForShortage(request, role)
        } else if Operation.isOfProviders(path: request.path, on: role) {
            self.push(request)
        } else {
            self.route(request, role)
        }
        if self.isDraining, self.workerConnections[request.stream.connection] == nil {
            self.sayGoodbye(request.stream.connection)
        }
    }

    package func streamClosed(_ stream: StreamID) {
        self.subscribers[stream] = nil
        self.uncountStream(stream)
        self.faults?.streamClosed(stream)
        self.liveStreamClosed(stream)
        guard let ended = self.streams.removeValue(forKey: stream) else { return }
        self.workerConnections[stream.connection]?.streams.remove(stream)
        self.workerConnections[stream.connection]?.wakes -= ended.wakes
        self.batch.append(.streamEnded(self.address(stream)))
        self.updatePing(stream.connection)
    }

    package func connectionClosed(_ connection: ConnectionID) {
        self.workerConnections[connection] = nil
        self.goodbyes[connection] = nil
        self.liftedConnections.remove(connection)
        self.providers?.connectionClosed(connection)
        self.connectionOfCredentialClosed(connection)
        self.authorization.certificates?.connectionClosed(connection)
        self.faults?.connectionClosed(connection)
    }

    package func handshakeFailed(_ cause: String) {
        self.shared.log.write(.handshakeFailed, ["cause": cause])
    }

    package func streamDrained(_ stream: StreamID) {
        guard self.streams[stream]?.isPaused == true else { return }
        self.streams[stream]?.isPaused = false
        self.batch.append(.streamPaused(self.address(stream), false))
    }

    package func turnEnded() {
        if !self.batch.isEmpty {
            self.requestsAtEngine += self.batch.answersDue
            self.batch.notePushesLeave()
            self.shared.engine.submit(&self.batch)
        }
        let isFull = self.requestsAtEngine >= self.settings.requestsAtEngineMax
        if isFull, !self.loop.isReadingPaused { self.shared.tally.met(.requestsAtEngineMax) }
        self.loop.isReadingPaused = isFull
        let change = self.loop.connectionCount - self.countedConnections
        guard change != 0 || self.isDraining else { return }
        self.countedConnections += change
        self.shared.connectionsChanged(by: change)
    }

    package func woken() {
        self.pulse.beat()
        if let settings = self.shared.mailboxes.loops[self.loop.index].take(into: &self.effects) {
            self.settings = settings
            self.loop.setLimits(settings.transport)
        }
        self.effects.handOver { self.take($0) }
        self.effects.removeAll()
    }

    package func secondPassed(_ monotonicMilliseconds: Int64) {
        for (stream, state) in self.streams where monotonicMilliseconds - state.lastWrite >= Self.keepAliveInterval {
            self.write(stream, ByteView(": keep-alive\n\n"))
        }
        self.writeLive()
        self.endExcessConnections()
        self.endConnectionsWithBadCertificates()
        self.endStreamsWithoutProof()
        if self.isDraining { self.endSilentConnections() }
    }

    package func alarmRang(_ monotonicMilliseconds: Int64) {
        if let faults = self.faults { self.performDue(faults, now: monotonicMilliseconds) }
    }

    // MARK: Shutdown

    /// The engine launches nothing more, and every wake it launched has reached this loop.
    func startDraining() {
        self.isDraining = true
        if let faults = self.faults { self.endFaults(faults) }
        var idle: [ConnectionID] = []
        self.loop.forEachConnection { connection in
            if (self.workerConnections[connection]?.wakes ?? 0) == 0 { idle.append(connection) }
        }
        for connection in idle { self.sayGoodbye(connection) }
    }

    /// The time of the shutdown is over: who still has a wake in flight, or an answer to come, is told so.
    package func loopEnds() {
        self.loop.forEachConnection { connection in
            self.loop.goAway(connection, debugData: Self.shutdown, inFlight: .dropped)
        }
    }

    private static var shutdown: ByteView { ByteView("{\"reason\":\"Shutdown\"}") }

    /// Ends connections that came during the shutdown and have asked nothing for a second: a worker's result may come
    /// on a new connection, but one that stays silent must not hold the shutdown up.
    private func endSilentConnections() {
        var silent: [ConnectionID] = []
        self.loop.forEachConnection { connection in
            guard self.workerConnections[connection] == nil else { return }
            let before = self.goodbyes[connection]
            if before == nil { self.goodbyes[connection] = false }
            if before == false { silent.append(connection) }
        }
        for connection in silent { self.sayGoodbye(connection) }
    }

    /// Ends a connection's streams and then itself, once what is open on it has been answered: GOAWAY comes last, since
    /// some clients take nothing more of any stream when they have seen one.
    private func sayGoodbye(_ connection: ConnectionID) {
        self.goodbyes[connection] = true
        self.endLive(on: connection)
        for stream in self.workerConnections[connection]?.streams ?? [] {
            self.streams[stream] = nil
            self.uncountStream(stream)
            self.batch.append(.streamEnded(self.address(stream)))
            self.loop.finish(stream)
        }
        self.workerConnections[connection] = nil
        self.loop.goAway(connection, debugData: Self.shutdown, inFlight: .answeredFirst)
    }

    // MARK: Streams

    /// Writes to a worker's stream. One whose peer does not read gets no new wakes until half of what it was sent has
    /// left; the bound is the loop's own, since `streamDrained` is promised to streams that have passed that one alone.
    func write(_ stream: StreamID, _ bytes: ByteView) {
        guard let queued = self.loop.write(stream, bytes) else { return }
        self.streams[stream]?.lastWrite = SystemClock.monotonic
        let bytesMax = self.settings.transport.streamingBytesSoftMax
        guard queued > bytesMax, self.streams[stream]?.isPaused == false else { return }
        self.streams[stream]?.isPaused = true
        self.batch.append(.streamPaused(self.address(stream), true))
    }

    /// Brings the connection's PINGs in line with what it carries; during a shutdown one without wakes is ended.
    func updatePing(_ connection: ConnectionID) {
        guard let worker = self.workerConnections[connection] else { return }
        if worker.wakes > 0 {
            self.loop.setPing(connection, everySeconds: Self.pingSeconds.inFlight)
        } else if self.isDraining {
            self.sayGoodbye(connection)
        } else {
            self.loop.setPing(connection, everySeconds: worker.streams.isEmpty ? nil : Self.pingSeconds.subscribed)
        }
    }

    // MARK: Names

    func address(_ stream: StreamID) -> StreamAddress { .stream(self.loopStream(stream)) }

    func loopStream(_ stream: StreamID) -> LoopStream {
        LoopStream(
            loop: UInt16(self.loop.index),
            connectionIndex: stream.connection.index,
            connectionGeneration: stream.connection.generation,
            number: stream.number
        )
    }

    func stream(_ address: StreamAddress) -> StreamID {
        switch address {
        case .stream(let stream), .faulted(let stream):
            let connection = ConnectionID(index: stream.connectionIndex, generation: stream.connectionGeneration)
            return StreamID(connection: connection, number: stream.number)
        case .webhook, .webhookReport: preconditionFailure("what is for webhooks goes to no loop")
        }
    }

    func newAPNsID() -> APNsID {
        APNsID(random: self.unique.next())
    }

    static func isPush(_ path: ByteView) -> Bool {
        path.starts(with: "/3/device")
    }

    /// Whether a path of the admin listener is that of the dashboard's page.
    static func isPage(_ path: ByteView) -> Bool {
        path == "/" || path.starts(with: "/?")
    }
}
