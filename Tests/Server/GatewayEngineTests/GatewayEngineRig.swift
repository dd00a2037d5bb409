import Engine
import Foundation
import Gateway
import Platform
import Policy
import Storage
import WakeGateTestKit
import Wire

import class Gateway.Operation

/// The embedded engine on a store that waits and fails on command, driven by the test's thread.
///
/// Requests and streams have numbers; a push's apns-id is derived from its request's.
final class GatewayEngineRig {
    let store: SimulatedStore
    let gate = Gate()
    let wakeup = Wakeup()
    let pulse = Pulse()
    private let engine: any GatewayEngine
    private let loop = LoopMailbox()
    private let history: HistoryThread
    /// All results in order.
    private(set) var told: [EngineOutput] = []
    private var isStopped = false

    /// - Throws: `StoreError` if the engine cannot start.
    init(
        _ store: SimulatedStore = SimulatedStore(),
        _ configuration: EngineConfiguration = EngineRig.open(),
        world: EngineWorld = .system,
        batching: CommitBatching = CommitBatching()
    ) throws {
        self.store = store
        let (gate, wakeup) = (self.gate, self.wakeup)
        store.whileCommitting = { _ in gate.pass { wakeup.deliver() } }
        self.loop.attach { wakeup.deliver() }
        self.history = try HistoryThread(
            mailboxes: PerOutput(self.loop),
            onDropped: { _ in },
            makeFile: { HistoryFile(path: nil, key: EngineRig.historyKey, limits: .inMemory) { _ in } }
        )
        do {
            self.engine = try LocalEngine(
                configuration: configuration,
                historyKey: EngineRig.historyKey,
                world: world,
                makeCommitter: { store, output, signal throws(StoreError) in
                    try CommitPipeline(store: store, output: output, batching: batching, signal: signal)
                },
                store: store,
                output: GroupOutput(mailboxes: PerOutput(self.loop), history: self.history),
                pulse: self.pulse,
                signal: { wakeup.signal() },
                onFailure: { wakeup.fail($0.message) }
            )
        } catch {
            self.history.stop()
            throw error
        }
    }

    /// Returns the reason for which an engine does not start on `store` if workers need no credential; nil if it
    /// starts.
    static func refusal(of store: any RecordStore) -> StoreError? {
        let outputs = PerOutput(LoopMailbox())
        do throws(StoreError) {
            let engine = try LocalEngine(
                configuration: EngineRig.open(),
                historyKey: EngineRig.historyKey,
                workers: .notRequired(folder: "/state"),
                store: store,
                output: GroupOutput(mailboxes: outputs, history: SteppedHistory(MemoryMedium(), outputs)),
                signal: {},
                onFailure: { _ in }
            )
            engine.finish()
            return nil
        } catch { return error }
    }

    deinit { self.stop() }

    /// Stops like a gateway that shuts down: everything accepted is made durable first. The last reference stops it,
    /// too.
    func stop() {
        guard !self.isStopped else { return }
        self.isStopped = true
        self.gate.open()
        self.engine.finish()
        self.history.stop()
        self.takeOutputs()
    }

    /// Performs one step with the whole batch, like the engine's thread.
    ///
    /// - Returns: the number of milliseconds until the next step.
    @discardableResult
    func step(_ fill: (Requests) -> Void = { _ in }) -> Int64 {
        let requests = Requests()
        fill(requests)
        requests.batch.notePushesLeave()
        return self.engine.step(requests.batch)
    }

    /// Performs a step with these requests, as a loop does instead of the engine's thread.
    ///
    /// - Returns: the result of `step`; nil if the engine does not allow it.
    func stepOnLoop(_ fill: (Requests) -> Void) -> Int64? {
        let requests = Requests()
        fill(requests)
        requests.batch.notePushesLeave()
        return self.engine.briefStep?(requests.batch)
    }

    /// Runs the engine, without requests, until `isDone` holds for the results.
    ///
    /// - Throws: if it does not within a minute.
    func run(_ what: String, until isDone: (GatewayEngineRig) -> Bool) throws {
        let limit = Date(timeIntervalSinceNow: 60)
        self.takeOutputs()
        while !isDone(self) {
            guard let isSignaled = self.wakeup.wait(until: limit) else {
                throw RigFailure("not within 60 s: \(what); told were \(self.told)")
            }
            if isSignaled { self.step() }
            self.takeOutputs()
        }
    }

    /// Sends requests in one step, and waits for all answers.
    @discardableResult
    func ask(_ requests: ClosedRange<Int>, _ fill: (Requests) -> Void) throws -> [EngineOutput] {
        self.step(fill)
        return try self.answers(requests)
    }

    /// Sends one request, and waits for its answer.
    @discardableResult
    func ask(_ request: Int, _ fill: (Requests) -> Void) throws -> EngineOutput {
        try self.ask(request...request, fill)[0]
    }

    /// Waits for the answers to requests; returns the first of each.
    @discardableResult
    func answers(_ requests: ClosedRange<Int>) throws -> [EngineOutput] {
        try self.run("answers to \(requests)") { rig in requests.allSatisfy { rig.answer($0) != nil } }
        return requests.compactMap { self.answer($0) }
    }

    /// Returns the answer to a request received so far.
    func answer(_ request: Int) -> EngineOutput? { self.told.first { $0.isAnswer && $0.request == request } }

    /// The delivered wakes in order.
    var wakes: [EngineOutput] {
        self.told.filter { if case .wake = $0 { true } else { false } }
    }

    /// Returns the id of the last delivered wake.
    func lastWake() throws -> WakeID {
        guard case .wake(let wake)? = self.wakes.last else { throw RigFailure("no wake was delivered") }
        return wake.id
    }

    /// Waits until this many wakes have been delivered.
    func waitForWakes(_ count: Int) throws {
        try self.run("\(count) wakes") { $0.wakes.count >= count }
    }

    /// Waits until a commit has reached the gate, which is closed.
    ///
    /// A store becomes idle only after its effects were released. Steps in between are submitted to it afterwards.
    func waitForCommit() throws {
        try self.run("a commit") { $0.gate.isOccupied }
    }

    /// Takes the contents of the mailbox without waiting.
    func takeOutputs() {
        let batch = CommandBatch()
        let heard = EngineOutput.all(from: self.loop)
        self.told += heard
        for case .asked(let request) in heard { batch.append(.request(request)) }
        // A request handed back by the history goes to the engine again, as in loops.
        if !batch.isEmpty { _ = self.engine.step(batch) }
    }

    static func apnsID(_ request: Int) -> String {
        var text = ByteBuffer()
        EngineRig.apnsID(UInt64(request)).write(to: &text)
        return text.view.string
    }
}

extension PerOutput<LoopMailbox> {
    /// Creates the outputs of a gateway with one loop and no webhooks.
    init(_ loop: LoopMailbox) { self.init(loops: [loop], webhooks: LoopMailbox()) }
}

extension WallOffset {
    /// The wall clock is ten seconds ahead of policy time.
    static let ahead = WallOffset(wall: 10_000, now: Instant(milliseconds: 0))
}

extension Int {
    /// The token of the device with this number.
    var token: DeviceToken { EngineRig.token(self) }
}

/// Requests as handed over by loops, in one batch.
final class Requests {
    let batch = CommandBatch()
    /// The caller of all further requests.
    var caller = Caller.gateway

    static func address(_ request: Int) -> StreamAddress {
        DispatchRig.address(request)
    }

    /// - Parameters:
    ///   - expiration: seconds since 1970; nil for none, 0 for now or never.
    ///   - clientID: the number from which the client's apns-id is derived; nil if the gateway creates one.
    ///   - isUpperCase: true if the apns-id is in upper case.
    func push(
        _ request: Int,
        _ device: Int,
        topic: Int = 0,
        _ priority: Priority = .considerate,
        expiration: Int64? = nil,
        wakes: Bool = true,
        isDryRun: Bool = false,
        clientID: Int? = nil,
        isUpperCase: Bool = false,
        collapseID: [UInt8] = []
    ) {
        let name = EngineRig.topicName(topic)
        let payload = "{\"aps\":{\"content-available\":1},\"n\":\(request)}"
        let apnsID = EngineRig.apnsID(UInt64(clientID ?? request))
        var push = Push()
        push.token = device.token
        push.apnsID = isUpperCase ? Self.upperCased(apnsID) : apnsID
        push.hasClientID = clientID != nil
        push.expiration = expiration.map { $0 == 0 ? .zero : .seconds($0) } ?? .absent
        push.priority = priority
        push.wakes = wakes
        push.isDryRun = isDryRun
        name.withByteView { topic in
            payload.withByteView { payload in
                collapseID.withByteView { collapseID in
                    push.topic = topic
                    push.payload = payload
                    push.collapseID = collapseID
                    self.batch.append(push, from: Self.address(request))
                }
            }
        }
    }

    func endStream(_ request: Int) { self.batch.append(.streamEnded(Self.address(request))) }

    func pauseStream(_ request: Int, _ isPaused: Bool) {
        self.batch.append(.streamPaused(Self.address(request), isPaused))
    }

    func changeSlots(_ request: Int, to slots: Int) { self.batch.append(.slotsChanged(Self.address(request), slots)) }

    func lose(_ wake: WakeID, on request: Int, takingBackAttempt: Bool) {
        self.batch.append(.lost(Self.address(request), wake, takingBackAttempt: takingBackAttempt))
    }

    func report(_ request: Int, _ wake: WakeID, _ result: FetchResult) {
        self.ask(request, "reportResult", .report(Named(wake), .push(result)))
    }

    /// - Parameter milliseconds: the time from now; nil for a whole window.
    func extend(_ request: Int, _ wake: WakeID, milliseconds: Int64? = nil) {
        self.ask(request, "extendWake", .extend(Named(wake), milliseconds: milliseconds))
    }

    func release(_ request: Int, _ wake: WakeID, _ reason: String = "no interpreter") {
        self.ask(request, "releaseWake", .release(Named(wake), reason: reason))
    }

    func drainStream(_ request: Int, _ stream: Int) {
        self.ask(request, "drainStream", .drainStream(Self.address(stream)))
    }

    func register(_ request: Int, _ device: Int, topic: Int = 0) {
        self.ask(request, "registerDevice", .register(device.token, topic: Self.topic(topic)))
    }

    func unregister(_ request: Int, _ device: Int) {
        self.ask(request, "removeDevice", .unregister(Named(device.token)))
    }

    func conditions(_ request: Int, _ device: Int, _ change: (inout ConditionsReport) -> Void) {
        var report = ConditionsReport()
        change(&report)
        self.ask(request, "reportConditions", .conditions(Named(device.token), report))
    }

    func readConditions(_ request: Int, _ device: Int) {
        self.ask(request, "conditions", .conditions(of: Named(device.token)))
    }

    func simulateLaunch(_ request: Int, _ device: Int, ofPendingAlone: Bool = false) {
        let work = EngineWork.simulateLaunch(Named(device.token), ofPendingAlone: ofPendingAlone)
        self.ask(request, "simulateLaunch", work)
    }

    func simulateExpiration(_ request: Int, _ device: Int) {
        self.ask(request, "simulateExpiration", .simulateExpiration(Named(device.token)))
    }

    func explain(_ request: Int, _ device: Int) {
        self.ask(request, "explainDevice", .explain(Named(device.token)))
    }

    func diagnose(_ request: Int, _ device: Int, task: String? = nil) {
        self.ask(request, "diagnoseDevice", .diagnosis(Named(device.token), task: task))
    }

    func whatIf(_ request: Int, _ device: Int, _ whatIf: WhatIf) {
        self.ask(request, "whatIf", .whatIf(Named(device.token), whatIf))
    }

    func whatIf(_ request: Int, topic: Int, _ whatIf: WhatIf) {
        self.ask(request, "topicWhatIf", .topicWhatIf(topic: Self.topic(topic), whatIf))
    }

    func trace(_ request: Int, _ device: Int) {
        self.ask(request, "deviceTrace", .deviceTrace(Named(device.token)))
    }

    func devicePushes(_ request: Int, _ device: Int) {
        self.ask(request, "devicePushes", .devicePushes(Named(device.token)))
    }

    func deviceEvents(_ request: Int, _ device: Int, _ selection: EventSelection = EventSelection()) {
        self.ask(request, "deviceEvents", .deviceEvents(Named(device.token), selection))
    }

    /// Requests the history of the push that request `number` sent.
    func way(_ request: Int, of number: Int, isUpperCase: Bool = false, device: Int? = nil) {
        let apnsID = EngineRig.apnsID(UInt64(number))
        let asked = isUpperCase ? Self.upperCased(apnsID) : apnsID
        self.ask(request, "pushWay", .push(asked, device: device?.token))
    }

    /// Returns the identifier with every letter in upper case.
    static func upperCased(_ apnsID: APNsID) -> APNsID {
        var text = ByteBuffer()
        apnsID.write(to: &text)
        return text.view.string.uppercased().withByteView { APNsID($0) } ?? apnsID
    }

    func statistics(_ request: Int) { self.ask(request, "statistics", .statistics()) }

    /// Asks for the counts since a moment, in milliseconds since 1970.
    func recent(_ request: Int, topic: Int, since: Int64, until: Int64 = .max) {
        self.ask(request, "topicStatistics", .topicStatistics(topic: Self.topic(topic), of: since..<until))
    }

    func statistics(_ request: Int, topic: Int) {
        self.ask(request, "topicStatistics", .topicStatistics(topic: Self.topic(topic)))
    }

    func topics(_ request: Int) { self.ask(request, "topics", .topics) }

    /// - Parameter named: the topics named in the configuration.
    func metrics(_ request: Int, named topics: [Int] = []) {
        let figures = GatewayFigures(
            process: .read(),
            startedAt: 1_000_500,
            connections: [(role: .edge, count: 7), (role: .admin, count: 1)],
            certificateExpiry: 2_000_000,
            topics: topics.map { EngineRig.topicName($0) }
        )
        self.ask(request, "metrics", .metrics(figures))
    }

    func readiness(_ request: Int) { self.ask(request, "ready", .readiness) }

    /// Adds a push that was refused by a loop.
    func rejected(_ reason: APNSReason, topic: Int = 0) {
        self.batch.append(.rejected(reason: reason.index, topic: Self.topic(topic)))
    }

    func drain() { self.batch.append(.drain) }

    func configure(_ configuration: EngineConfiguration, inForce: @escaping @Sendable (UInt32) -> Void = { _ in }) {
        self.batch.append(.configure(EngineSettings(engine: configuration, inForce: inForce)))
    }

    /// Sends a request for an operation, given by its name.
    func ask(_ request: Int, _ name: String, _ work: EngineWork) {
        guard let operation = Operation.all.first(where: { $0.name == name }) else {
            preconditionFailure("no operation has the name \(name)")
        }
        self.ask(request, operation, work)
    }

    /// Sends a request like the gateway's interface; the operation declares its handling after a failure.
    func ask(_ request: Int, _ operation: Operation, _ work: EngineWork) {
        self.batch.append(
            .request(
                EngineRequest(
                    reply: Self.address(request),
                    caller: self.caller,
                    afterFailedStore: operation.afterFailedStore,
                    work
                )
            )
        )
    }

    static func topic(_ number: Int) -> [UInt8] { Array(EngineRig.topicName(number).utf8) }
}

extension HistoryQuestion {
    /// Creates a request of an operator of all topics. The wall clock is a second ahead of policy time.
    init(_ request: Int, about subject: Subject) {
        self.init(
            EngineRequest(
                reply: Requests.address(request),
                caller: .gateway,
                afterFailedStore: .answered,
                .statistics()
            ),
            subject: subject,
            key: EngineRig.historyKey,
            offset: WallOffset(wall: 1000, now: Instant(milliseconds: 0)),
            policies: PolicyVersions()
        )
    }
}
