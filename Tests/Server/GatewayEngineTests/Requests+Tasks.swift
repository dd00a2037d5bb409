import Engine
import Gateway
import Policy
import WakeGateTestKit
import Wire

/// Requests about background tasks and sessions.
extension Requests {
    /// Adds a stream that handles tasks and sessions.
    ///
    /// - `tasks`: identifiers or patterns.
    func subscribe(
        _ request: Int,
        topic: Int = 0,
        slots: Int = 4,
        tasks: [String] = [],
        sessions: [String] = [],
        resources: [String] = [],
        takesPushes: Bool = true,
        reportsConditions: Bool = false,
        naming devices: [Int] = [],
        label: String = ""
    ) {
        let subscription = SubscriptionRequest(
            slots: slots,
            takesPushes: takesPushes,
            tasks: tasks.map { IdentifierPattern($0) },
            sessions: sessions.map { IdentifierPattern($0) },
            resources: resources,
            reportsConditions: reportsConditions,
            devices: devices.map { EngineRig.token($0) },
            label: label
        )
        self.ask(request, "subscribe", .subscribe(topic: Self.topic(topic), subscription))
    }

    /// - `earliestBegin`: milliseconds since 1970.
    func submit(
        _ request: Int,
        _ device: Int,
        _ identifier: String = "refresh",
        _ kind: TaskSubmission.Kind = .appRefresh,
        earliestBegin: Int64? = nil,
        details: TaskDetails = TaskDetails()
    ) {
        let task = IncomingTask(
            identifier: identifier,
            kind: kind,
            earliestBegin: earliestBegin.map { Instant(milliseconds: $0) },
            details: details
        )
        self.ask(request, "submitTask", .submitTask(Named(device.token), task))
    }

    /// - `identifier`: nil for every request of the device.
    func cancel(_ request: Int, _ device: Int, _ identifier: String?) {
        self.ask(request, "cancelTask", .cancelTask(Named(device.token), identifier: identifier))
    }

    func listTasks(_ request: Int, _ device: Int) {
        self.ask(request, "listTasks", .listTasks(Named(device.token)))
    }

    func allTasks(_ request: Int, _ question: TaskQuestion = TaskQuestion()) {
        self.ask(request, "allTasks", .tasks(question))
    }

    func devices(_ request: Int, _ fill: (inout DeviceQuestion) -> Void = { _ in }) {
        var question = DeviceQuestion()
        fill(&question)
        self.ask(request, "listDevices", .devices(question))
    }

    func allPushes(_ request: Int, _ fill: (inout PushQuestion) -> Void = { _ in }) {
        var question = PushQuestion()
        fill(&question)
        self.ask(request, "listPushes", .pushes(question))
    }

    func resources(_ request: Int, topic: Int = 0) {
        self.ask(request, "resources", .resources(topic: Self.topic(topic)))
    }

    func finish(_ request: Int, _ device: Int, _ session: String, _ count: UInt64 = 1, id: String? = nil) {
        let finished = FinishedTransfers(session: session, count: count, id: id)
        self.ask(request, "transfersFinished", .transfersFinished(Named(device.token), finished))
    }

    func report(_ request: Int, _ wake: WakeID, _ result: TaskResult) {
        self.ask(request, "reportResult", .report(Named(wake), .task(result)))
    }

    func progress(_ request: Int, _ wake: WakeID, _ completed: UInt64, of total: UInt64 = 100) {
        let progress = TaskProgress(completed: completed, total: total)
        self.ask(request, "reportProgress", .progress(Named(wake), progress))
    }

    func simulateLaunch(_ request: Int, _ device: Int, of identifier: String) {
        self.ask(request, "simulateTaskLaunch", .simulateTaskLaunch(Named(device.token), identifier: identifier))
    }

    func simulateExpiration(_ request: Int, _ device: Int, of identifier: String) {
        self.ask(
            request,
            "simulateTaskExpiration",
            .simulateTaskExpiration(Named(device.token), identifier: identifier)
        )
    }
}

/// Operators' requests about pending launches.
extension Requests {
    func pause(_ request: Int, topic: Int = 0) { self.pause(request, "pauseTopic", topic, true) }

    func resume(_ request: Int, topic: Int = 0) { self.pause(request, "resumeTopic", topic, false) }

    private func pause(_ request: Int, _ operation: String, _ topic: Int, _ isPaused: Bool) {
        let name = EngineRig.topicName(topic).withByteView { $0.array }
        self.ask(request, operation, .pauseTopic(topic: name, isPaused))
    }

    /// - `topic`: nil for the device's own.
    func testPush(_ request: Int, _ device: Int, topic: Int? = nil, refused reason: APNSReason? = nil) {
        let payload = "{\"aps\":{\"content-available\":1},\"n\":\(request)}"
        let push = payload.withByteView { payload in
            var push = Push()
            push.apnsID = EngineRig.apnsID(UInt64(request))
            push.priority = .considerate
            push.payload = payload
            push.wakes = true
            return TestPush(
                Named(device.token),
                push,
                topic: topic.map { EngineRig.topicName($0) },
                refused: reason
            )
        }
        self.ask(request, "testPush", .testPush(push))
    }

    func pendingPush(_ request: Int, _ device: Int) {
        self.ask(request, "pendingPush", .pendingPush(Named(device.token)))
    }

    func dropPending(_ request: Int, _ device: Int) {
        self.ask(request, "dropPending", .cancelPending(Named(device.token)))
    }
}
