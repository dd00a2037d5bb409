package import Engine
package import Policy
package import Wire

/// A production dispatcher on a production engine, in virtual time, with streams named by numbers.
package final class DispatchRig {
    package let rig: EngineRig
    package let dispatcher: Dispatcher
    package let output = RecordingOutput()

    package init(
        _ configuration: EngineConfiguration = EngineRig.open(),
        start: Int64 = 1_700_000_000_000,
        seed: UInt64 = 1,
        wakeBytesPerStreamMax: Int = 4_194_304,
        workPerStepMax: Int = 4096
    ) {
        self.rig = EngineRig(configuration, start: start, seed: seed)
        self.dispatcher = Dispatcher(
            engine: self.rig.engine,
            output: self.output,
            wakeBytesPerStreamMax: wakeBytesPerStreamMax,
            workPerStepMax: workPerStepMax
        )
    }

    package var engine: EmbeddedEngine { self.rig.engine }

    package static func address(_ stream: Int) -> StreamAddress {
        .stream(LoopStream(loop: 0, connectionIndex: UInt32(stream), connectionGeneration: 1, number: 1))
    }

    /// Time goes on, and everything due is done.
    package func advance(by milliseconds: Int64) {
        self.rig.pass(milliseconds)
        while !self.dispatcher.advance(to: self.rig.instant, devicesMax: 1000) {}
    }

    /// - Returns: nil when it is refused.
    @discardableResult
    package func push(
        _ device: Int,
        topic: Int = 0,
        _ priority: Priority = .considerate,
        _ expiration: Expiration = .absent,
        isDryRun: Bool = false,
        wakes: Bool = true,
        clientID: UInt64? = nil
    ) -> PushAnswer? {
        self.rig.makePush(priority, expiration, wakes: wakes, clientID: clientID) { made, expiration in
            EngineRig.topicName(topic).withByteView { topic in
                var push = made
                push.token = EngineRig.token(device)
                push.topic = topic
                push.isDryRun = isDryRun
                return try? self.dispatcher.push(push, expiration)
            }
        }
    }

    /// A worker subscribes; `devices` are those it names, none for any of the topic.
    @discardableResult
    package func subscribe(
        _ stream: Int,
        topic: Int = 0,
        slots: Int = 1,
        kinds: [LaunchKind] = [.push],
        tasks: [String] = [],
        sessions: [String] = [],
        resources: [String] = [],
        reportsConditions: Bool = false,
        devices: [Int] = []
    ) -> Bool {
        let request = SubscriptionRequest(
            slots: slots,
            takesPushes: kinds.contains(.push),
            tasks: tasks.map { IdentifierPattern($0) },
            sessions: sessions.map { IdentifierPattern($0) },
            resources: resources,
            reportsConditions: reportsConditions,
            devices: devices.map { EngineRig.token($0) }
        )
        let limit = EngineRig.topicName(topic).withByteView { topic in
            self.dispatcher.subscribed(Self.address(stream), topic: topic, request)
        }
        return limit == nil
    }

    package func endStream(_ stream: Int) { self.dispatcher.streamEnded(Self.address(stream)) }

    package func pause(_ stream: Int, _ isPaused: Bool) {
        self.dispatcher.streamPaused(Self.address(stream), isPaused)
    }

    @discardableResult
    package func report(_ result: FetchResult, _ wake: WakeID) -> ReportOutcome {
        self.dispatcher.report(.push(result), wake: wake)
    }

    /// A worker says how a task ended.
    @discardableResult
    package func report(_ result: TaskResult, _ wake: WakeID) -> ReportOutcome {
        self.dispatcher.report(.task(result), wake: wake)
    }

    /// A request is submitted for a device, which is registered with the topic if it is not.
    ///
    /// - Returns: nil when it is refused.
    @discardableResult
    package func submit(
        _ device: Int,
        _ identifier: String,
        _ kind: TaskSubmission.Kind = .appRefresh,
        topic: Int = 0,
        earliestBegin: Instant? = nil,
        resources: [String] = []
    ) -> TaskAnswer? {
        self.rig.register(device, topic: topic)
        let request = IncomingTask(
            identifier: identifier,
            kind: kind,
            earliestBegin: earliestBegin,
            details: TaskDetails(resources: resources)
        )
        return try? self.dispatcher.submit(request, self.rig.index(device))
    }

    /// Transfers of a session of a device finish, which is registered with the topic if it is not.
    package func finish(_ device: Int, _ session: String, count: UInt64 = 1, topic: Int = 0) {
        self.rig.register(device, topic: topic)
        try? self.dispatcher.transfersFinished(session: session, count: count, id: nil, self.rig.index(device))
    }

    /// A device reports conditions that `change` sets.
    @discardableResult
    package func conditions(_ device: Int, _ change: (inout ConditionsReport) -> Void) -> Conditions {
        var report = ConditionsReport()
        change(&report)
        return self.dispatcher.conditions(report, self.rig.index(device))
    }

    /// The deliveries since the last call, with everything else that was told.
    package func takeDeliveries() -> [Delivery] {
        defer { _ = self.output.take() }
        return self.output.deliveries
    }
}

extension StreamAddress {
    /// The number that `DispatchRig.address` made it of.
    package var number: Int {
        switch self {
        case .stream(let stream), .faulted(let stream): Int(stream.connectionIndex)
        case .webhook(let number), .webhookReport(let number): Int(number)
        }
    }
}

/// Keeps what the dispatcher tells workers, in its order.
package final class RecordingOutput: DispatchOutput {
    package enum Event: Hashable, Sendable {
        case delivered(Delivery)
        case expired(WakeID, StreamAddress, ExpirationReason)
        case released(WakeID, StreamAddress)
        case drained(StreamAddress)
        /// Conditions of a device have changed: what they are.
        case conditions(DeviceToken, Conditions, StreamAddress)
    }

    /// A worker was told that the deadline of its wake is near.
    package struct Warning: Hashable, Sendable {
        package let wake: WakeID
        package let stream: StreamAddress
        package let deadline: Instant
        /// In milliseconds.
        package let timeLeft: Int64
    }

    package private(set) var events: [Event] = []
    /// Apart from all other events.
    private var warnings: [Warning] = []

    package init() {}

    package func deliver(_ wake: borrowing LaunchedWake, to stream: StreamAddress) {
        var delivery = Delivery(
            wake: wake.id,
            stream: stream,
            token: wake.token,
            topic: wake.topic,
            kind: wake.kind,
            deadline: wake.deadline
        )
        switch wake.cause {
        case .task(let task): delivery.task = task
        case .push(var push, let content):
            // What the handle names is gone after the call, and it differs from run to run.
            push.handle = .none
            delivery.push = push
            delivery.apnsID = content?.apnsID
            delivery.payload = content?.payload.array ?? []
        }
        self.events.append(.delivered(delivery))
    }

    package func warn(_ wake: WakeID, on stream: StreamAddress, deadline: Instant, timeLeft: Int64) {
        self.warnings.append(Warning(wake: wake, stream: stream, deadline: deadline, timeLeft: timeLeft))
    }

    package func expire(_ wake: WakeID, on stream: StreamAddress, reason: ExpirationReason) {
        self.events.append(.expired(wake, stream, reason))
    }

    package func released(_ wake: WakeID, on stream: StreamAddress) {
        self.events.append(.released(wake, stream))
    }

    package func drained(_ stream: StreamAddress) {
        self.events.append(.drained(stream))
    }

    package func conditionsChanged(_ token: DeviceToken, _ conditions: Conditions, on stream: StreamAddress) {
        self.events.append(.conditions(token, conditions, stream))
    }

    /// Takes the warnings since the last call.
    package func takeWarnings() -> [Warning] {
        defer { self.warnings.removeAll() }
        return self.warnings
    }

    /// Takes the events since the last call.
    package func take() -> [Event] {
        defer { self.events.removeAll() }
        return self.events
    }

    /// The wakes delivered since the events were last taken.
    package var deliveries: [Delivery] {
        self.events.compactMap {
            guard case .delivered(let delivery) = $0 else { return nil }
            return delivery
        }
    }

    /// The wakes expired since the events were last taken.
    package var expirations: [WakeID] {
        self.events.compactMap {
            guard case .expired(let wake, _, _) = $0 else { return nil }
            return wake
        }
    }
}

/// A wake as its worker was told of it.
package struct Delivery: Hashable, Sendable {
    package let wake: WakeID
    package let stream: StreamAddress
    package let token: DeviceToken
    package let topic: String
    package let kind: LaunchKind
    package let deadline: Instant
    /// nil for a task.
    package fileprivate(set) var push: PendingPush?
    /// nil for a push.
    package fileprivate(set) var task: LaunchedTask?
    /// nil for an empty wake, and for a task.
    package fileprivate(set) var apnsID: APNsID?
    /// Empty for an empty wake, and for a task.
    package fileprivate(set) var payload: [UInt8] = []
}
