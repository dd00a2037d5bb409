package import Engine
package import Policy
package import Wire

/// A dispatcher and an engine, as in production, in virtual time. Numbers identify the streams.
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

    package var engine: DeviceEngine { self.rig.engine }

    package static func address(_ stream: Int) -> StreamAddress {
        .stream(LoopStream(loop: 0, connectionIndex: UInt32(stream), connectionGeneration: 1, number: 1))
    }

    /// Advances policy time, and makes the dispatcher perform everything that is due.
    package func advance(by milliseconds: Int64) {
        self.rig.pass(milliseconds)
        while !self.dispatcher.advance(to: self.rig.instant, devicesMax: 1000) {}
    }

    /// Sends a push to a device.
    ///
    /// - Returns: the answer; nil if the push is refused.
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

    /// Subscribes a worker to `devices`, or to all devices of the topic if `devices` is empty.
    ///
    /// - Returns: false if a limit prevents the subscription.
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
        devices: [Int] = [],
        stallsWhenSilent: Bool = true,
        label: String = ""
    ) -> Bool {
        let request = SubscriptionRequest(
            slots: slots,
            takesPushes: kinds.contains(.push),
            tasks: tasks.map { IdentifierPattern($0) },
            sessions: sessions.map { IdentifierPattern($0) },
            resources: resources,
            reportsConditions: reportsConditions,
            devices: devices.map { EngineRig.token($0) },
            stallsWhenSilent: stallsWhenSilent,
            label: label
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

    /// Reports the result of a task.
    @discardableResult
    package func report(_ result: TaskResult, _ wake: WakeID) -> ReportOutcome {
        self.dispatcher.report(.task(result), wake: wake)
    }

    /// Submits a task for a device, and registers the device with the topic if needed.
    ///
    /// - Returns: the answer; nil if the task is refused.
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

    /// Reports finished transfers of a device's session, and registers the device with the topic if needed.
    package func finish(_ device: Int, _ session: String, count: UInt64 = 1, topic: Int = 0) {
        self.rig.register(device, topic: topic)
        try? self.dispatcher.transfersFinished(session: session, count: count, id: nil, self.rig.index(device))
    }

    /// Reports the conditions of a device that `change` sets.
    @discardableResult
    package func conditions(_ device: Int, _ change: (inout ConditionsReport) -> Void) -> Conditions {
        var report = ConditionsReport()
        change(&report)
        return self.dispatcher.conditions(report, self.rig.index(device))
    }

    /// Returns the deliveries since the last call, and discards all other recorded events.
    package func takeDeliveries() -> [Delivery] {
        defer { _ = self.output.take() }
        return self.output.deliveries
    }
}

extension StreamAddress {
    /// The number of the stream, as passed to `DispatchRig.address`, or of the webhook.
    package var number: Int {
        switch self {
        case .stream(let stream), .faulted(let stream): Int(stream.connectionIndex)
        case .webhook(let number), .webhookReport(let number): Int(number)
        }
    }
}

/// An output that records the events for workers, in order.
package final class RecordingOutput: DispatchOutput {
    package enum Event: Hashable, Sendable {
        case delivered(Delivery)
        case expired(WakeID, StreamAddress, ExpirationReason)
        case released(WakeID, StreamAddress)
        case drained(StreamAddress)
        /// The conditions of a device have changed to the given ones.
        case conditions(DeviceToken, Conditions, StreamAddress)
    }

    /// A warning to a worker that the deadline of its wake is near.
    package struct Warning: Hashable, Sendable {
        package let wake: WakeID
        package let stream: StreamAddress
        package let deadline: Instant
        /// The remaining time in milliseconds.
        package let timeLeft: Int64
    }

    package private(set) var events: [Event] = []
    /// The warnings, separate from all other events.
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
            // The handle is valid only during the call, and may differ between two runs.
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

    /// Returns the warnings since the last call.
    package func takeWarnings() -> [Warning] {
        defer { self.warnings.removeAll() }
        return self.warnings
    }

    /// Returns the events since the last call.
    package func take() -> [Event] {
        defer { self.events.removeAll() }
        return self.events
    }

    /// The wakes delivered since the last call of `take`.
    package var deliveries: [Delivery] {
        self.events.compactMap {
            guard case .delivered(let delivery) = $0 else { return nil }
            return delivery
        }
    }

    /// The wakes expired since the last call of `take`.
    package var expirations: [WakeID] {
        self.events.compactMap {
            guard case .expired(let wake, _, _) = $0 else { return nil }
            return wake
        }
    }
}

/// A wake as delivered to its worker.
package struct Delivery: Hashable, Sendable {
    package let wake: WakeID
    package let stream: StreamAddress
    package let token: DeviceToken
    package let topic: String
    package let kind: LaunchKind
    package let deadline: Instant
    /// The push; nil for a task.
    package fileprivate(set) var push: PendingPush?
    /// The task; nil for a push.
    package fileprivate(set) var task: LaunchedTask?
    /// The apns-id of the push; nil for an empty wake and for a task.
    package fileprivate(set) var apnsID: APNsID?
    /// The payload of the push; empty for an empty wake and for a task.
    package fileprivate(set) var payload: [UInt8] = []
}
