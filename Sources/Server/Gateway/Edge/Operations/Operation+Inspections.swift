import Engine
package import Policy
import Storage
import Synchronization
package import Wire

extension Operation {
    /// The operations that show the state and the history of devices and pushes to operators.
    package static let inspections: [Operation] = [
        ofEngine("explainDevice", .get, "/v1/devices/{token}", by: .operator) { call throws(APIError) in
            .explain(try call.device())
        },
        ofEngine("diagnoseDevice", .get, "/v1/devices/{token}/diagnosis", by: .operator) { call throws(APIError) in
            let task = try call.task()
            return .diagnosis(try call.device(), task: task)
        },
        ofEngine("devicePushes", .get, "/v1/devices/{token}/pushes", by: .operator) { call throws(APIError) in
            .devicePushes(try call.device())
        },
        ofEngine("deviceEvents", .get, "/v1/devices/{token}/events", by: .operator) { call throws(APIError) in
            let selection = try EventSelection(query: call.query)
            return .deviceEvents(try call.device(), selection)
        },
        ofEngine("deviceTrace", .get, "/v1/devices/{token}/trace", by: .operator) { call throws(APIError) in
            .deviceTrace(try call.device())
        },
        // Requires access to every topic, because the history records pushes without their topics.
        ofOperators("listPushes", .get, "/v1/pushes", reaching: .everyTopic) { call throws(APIError) in
            .asked(.pushes(try PushQuestion(query: call.query)))
        },
        // Requires access to every topic, because the history records pushes without their topics.
        ofOperators("pushWay", .get, "/v1/pushes/{apnsID}", reaching: .everyTopic) { call throws(APIError) in
            let query = try PushQuery(call.query)
            guard let apnsID = APNsID(call.parameter) else { throw .unknownPush }
            return .asked(.push(apnsID, device: query.device))
        },
        ofEngine(
            "whatIf",
            .post,
            "/v1/devices/{token}/what-if",
            by: .operator,
            afterFailedStore: .answeredFromDurableState
        ) { call throws(APIError) in
            let whatIf = try WhatIf(try RequestBody.object(call.body, reason: "BadPolicy"))
            return .whatIf(try call.device(), whatIf)
        },
        ofEngine("topicWhatIf", .get, "/v1/topics/{topic}/what-if", by: .operator, reaching: .topicInPath) {
            call throws(APIError) in
            let whatIf = try WhatIf(query: call.query)
            return .topicWhatIf(topic: try call.topic(), whatIf)
        },
    ]
}

// MARK: - At the engine

extension EngineWork {
    /// Answers with the state of a device and its latest history.
    package static func explain(_ device: Named<DeviceToken>) -> EngineWork {
        EngineWork(reading: device) { scope, device in
            let snapshot = scope.workspace.snapshot(device.index)
            return .history(
                .explanation(
                    Explanation(
                        device: snapshot,
                        webhook: scope.room.webhooks[snapshot.topic],
                        workers: scope.workspace.workerCounts(scope.engine.topic(of: device.index)),
                        policy: scope.room.records.policies.current,
                        now: scope.engine.now,
                        offset: scope.workspace.offset
                    ),
                    for: scope.caller
                )
            )
        }
    }

    /// Answers with the checks that decide when a push to a device, or one of its task requests, launches.
    ///
    /// - `task`: the identifier of the task request; nil for a push.
    package static func diagnosis(_ device: Named<DeviceToken>, task: String?) -> EngineWork {
        EngineWork(reading: device) { scope, device in
            let snapshot = scope.workspace.snapshot(device.index)
            let topic = scope.engine.topic(of: device.index)
            var outlook = task.map { scope.dispatcher.outlook(ofTask: $0, device.index) }
            if let found = outlook {
                let takers = scope.workspace.takersShown(found.launch.takers, of: found.target, topic)
                outlook?.launch.takers = takers
            }
            let diagnosis = Diagnosis(
                device: snapshot,
                task: outlook,
                webhook: scope.room.webhooks[snapshot.topic],
                workers: scope.workspace.workerCounts(topic),
                now: scope.engine.now,
                offset: scope.workspace.offset
            )
            return .json { diagnosis.write(to: &$0) }
        }
    }

    /// Lists the latest pushes to a device.
    package static func devicePushes(_ device: Named<DeviceToken>) -> EngineWork {
        EngineWork(reading: device) { scope, device in .history(.pushes(device.token, for: scope.caller)) }
    }

    /// Lists the events of a device.
    package static func deviceEvents(_ device: Named<DeviceToken>, _ selection: EventSelection) -> EngineWork {
        EngineWork(reading: device) { scope, device in
            let state = scope.engine.snapshot(device.index)
            let registeredAt = state.isRegistered ? state.registrationChangedAt : nil
            let (token, topic) = (state.token, state.topic)
            return .history(
                .events(token, topic: topic, registeredAt: registeredAt, selection, for: scope.caller)
            )
        }
    }

    /// Answers with the simulated outcome of a device's recorded pushes and tasks under another policy.
    package static func whatIf(_ device: Named<DeviceToken>, _ whatIf: WhatIf) -> EngineWork {
        Self.replay(device) { token, replay, recent, offset throws(APIError) in
            let isWhole = recent.count < PolicyReplay.eventsMax
            let recorded = replay.recorded(token.hex, recent, offset)
            return try .json { writer throws(APIError) in
                try replay.write(token, recorded, whatIf.changes, isWhole: isWhole, to: &writer, offset)
            }
        }
    }

    /// Answers with the recorded pushes and tasks of a device, in the form of a trace for the simulator.
    package static func deviceTrace(_ device: Named<DeviceToken>) -> EngineWork {
        Self.replay(device) { token, replay, recent, offset in
            PolicyReplay.trace(replay.recorded(token.hex, recent, offset))
        }
    }

    private static func replay(
        _ device: Named<DeviceToken>,
        _ answer:
            @escaping @Sendable (DeviceToken, PolicyReplay, [HistoryEntry], WallOffset) throws(APIError) -> Outcome
    ) -> EngineWork {
        EngineWork(reading: device) { scope, device throws(APIError) in
            let token = device.token
            let parameters = scope.engine.parameters(scope.engine.topic(of: device.index))
            let replay = PolicyReplay(parameters: parameters, now: scope.engine.now)
            let ticket = try scope.room.admit(.devices)
            let caller = scope.caller
            return .history(
                HistoryQuestion.Subject(find: { reading throws(APIError) in
                    defer { ticket.isAnswered.store(true, ordering: .relaxed) }
                    let device = reading.number(of: token)
                    let recent = reading.source.entries(device: device, count: PolicyReplay.eventsMax)
                    return .outcome(try answer(token, replay, recent.visible(to: caller, \.event), reading.offset))
                })
            )
        }
    }

    /// Answers with the simulated outcome of a topic's recorded pushes and tasks under another policy.
    package static func topicWhatIf(topic name: [UInt8], _ whatIf: WhatIf) -> EngineWork {
        EngineWork(.counts(.one(name))) { scope throws(APIError) in
            let topic = try scope.topic(name)
            let ticket = try scope.room.admit(.topics)
            let registered = scope.engine.countersShown(topic).registered
            return .history(
                HistoryQuestion.Subject(find: { _ in
                    .more(.replayedDevices(ticket, topic: name, whatIf.changes, registered: registered))
                })
            )
        }
    }

    /// Finds the devices of a topic whose records are replayed.
    private static func replayedDevices(
        _ ticket: ReplayTicket,
        topic name: [UInt8],
        _ changes: [PolicyChange],
        registered: Int64
    ) -> EngineWork {
        var question = DeviceQuestion()
        question.topic = name.withByteView { $0.string }
        question.order = .recent
        question.limit = TopicReplay.devicesMax
        return EngineWork(.list(.devices(question))) { [question] scope throws(APIError) in
            let topic = try scope.topic(name)
            let recent = scope.workspace.recent
            let caller = scope.caller
            var search = scope.workspace.search(question, for: caller)
            return .list(
                LongList(
                    search: { recent != nil || $0.engine.look(&search, placesMax: LongList.placesMax) },
                    ask: { workspace in
                        let replay = PolicyReplay(
                            parameters: workspace.engine.parameters(topic),
                            now: workspace.engine.now
                        )
                        return TopicReplay(
                            ticket,
                            topic: workspace.engine.topicName(topic),
                            changes,
                            replay,
                            devices: recent ?? search.tokens,
                            registered: registered,
                            for: caller
                        ).question
                    }
                )
            )
        }
    }

    /// Lists the pushes to all devices, the newest first.
    package static func pushes(_ question: PushQuestion) -> EngineWork {
        EngineWork { _ in
            .history(
                HistoryQuestion.Subject(find: { reading in
                    let listing = PushListing(question, reading.source, reading.offset)
                    guard let devices = reading.source.devices(of: listing.devices, reading.key) else {
                        return .more(.listedPushes(listing))
                    }
                    return .outcome(.json { writer in listing.write(to: &writer, reading.offset) { devices[$0] } })
                })
            )
        }
    }

    /// Lists a page of pushes. The engine finds their devices, because the history cannot.
    private static func listedPushes(_ listing: PushListing) -> EngineWork {
        EngineWork { scope in
            .json { writer in
                listing.write(to: &writer, scope.workspace.offset) { Self.device(number: $0, scope) }
            }
        }
    }

    /// Answers with the history of a push to `device`; if it is nil, to the device that last received a push with this
    /// id.
    package static func push(_ apnsID: APNsID, device: DeviceToken?) -> EngineWork {
        EngineWork { _ in
            .history(
                HistoryQuestion.Subject(find: { reading throws(APIError) in
                    let events = reading.source.push(apnsID)
                    guard let number = device.map({ reading.number(of: $0) }) ?? events.last?.device else {
                        throw .unknownPush
                    }
                    var history = PushHistory(apnsID)
                    for event in events where event.device == number { history.append(event) }
                    guard !history.steps.isEmpty else { throw .unknownPush }
                    guard let devices = reading.source.devices(of: [number], reading.key) else {
                        return .more(.shownPush(history, device: number))
                    }
                    if history.state == .pending, let device = devices[number] {
                        return .more(.pendingPush(history, device))
                    }
                    return .outcome(.json { history.write(to: &$0, reading.offset, devices[number], nil) })
                })
            )
        }
    }

    /// Answers with a push. The engine finds the device, because the history cannot.
    private static func shownPush(_ history: PushHistory, device number: UInt64) -> EngineWork {
        EngineWork { scope in
            let pending = scope.engine.find(number: number).flatMap { Self.pending(history, $0, scope) }
            let device = Self.device(number: number, scope)
            return .json { history.write(to: &$0, scope.workspace.offset, device, pending) }
        }
    }

    /// Answers with a pending push and its device.
    private static func pendingPush(_ history: PushHistory, _ logged: LoggedDevice) -> EngineWork {
        EngineWork(reading: Named(logged.token)) { scope, device in
            let pending = Self.pending(history, device.index, scope)
            return .json { history.write(to: &$0, scope.workspace.offset, logged, pending) }
        }
    }

    /// Returns the device if the push is its pending push; nil otherwise.
    private static func pending(
        _ history: PushHistory,
        _ device: DeviceIndex,
        _ scope: AuthorizedScope
    ) -> DeviceSnapshot? {
        guard scope.engine.pendingPush(device)?.content.apnsID == history.apnsID else { return nil }
        return scope.workspace.snapshot(device)
    }

    /// Returns the device whose number in the history is `number`; nil if the device was removed.
    private static func device(number: UInt64, _ scope: AuthorizedScope) -> LoggedDevice? {
        guard let device = scope.engine.find(number: number) else { return nil }
        let identity = scope.engine.identity(device)
        return LoggedDevice(token: identity.token, topic: scope.engine.topicName(identity.topic))
    }
}

// MARK: - In the history

extension HistoryQuestion.Subject {
    /// Writes a device's state and its latest history.
    package static func explanation(_ explanation: Explanation, for caller: Caller) -> Self {
        Self { reading, writer in
            explanation.writeMembers(to: &writer)
            writer.beginArray("recent")
            let (token, topic) = (explanation.device.token, explanation.device.topic)
            let recent = reading.source.entries(
                device: reading.number(of: token),
                and: [reading.streams(topic, naming: token)],
                count: Explanation.recentMax
            )
            for entry in recent.visible(to: caller, \.event) {
                entry.write(to: &writer, reading.offset, reading.policies)
            }
            writer.endArray()
        }
    }

    /// Writes the latest pushes to a device.
    package static func pushes(_ device: DeviceToken, for caller: Caller) -> Self {
        Self { reading, writer in
            let events = reading.source.recent(
                device: reading.number(of: device),
                count: PushList.eventsMax,
                examinedMax: PushList.examinedMax,
                where: { $0.kind.task == nil }
            )
            writer.hex("token") { device.writeHex(to: &$0) }
            writer.key("pushes")
            PushList(recent: events.visible(to: caller) { $0 }).write(to: &writer, reading.offset)
        }
    }

    /// Writes the events of a device, including the subscriptions of streams that name the device or accept its whole
    /// topic.
    ///
    /// - `registeredAt`: the time of the device's last registration; nil if the device was removed since.
    package static func events(
        _ device: DeviceToken,
        topic: String,
        registeredAt: Instant? = nil,
        _ selection: EventSelection,
        for caller: Caller
    ) -> Self {
        let streams: [DeviceToken?] = [nil, .subscription].contains(selection.kind) ? [nil, device] : []
        return Self { reading, writer in
            let number = reading.number(of: device)
            let since = selection.since.map { reading.offset.instant(wallMilliseconds: $0) } ?? .distantPast
            let page = reading.source.page(
                device: number,
                and: streams.map { reading.streams(topic, naming: $0) },
                before: selection.start(reading.offset),
                notBefore: max(since, reading.oldest(number, registeredAt: registeredAt, for: caller)),
                countMax: selection.limit,
                examinedMax: EventSelection.examinedMax,
                where: { selection.contains($0) }
            )
            writer.hex("token") { device.writeHex(to: &$0) }
            page.writeMembers(to: &writer, reading.offset, reading.policies)
        }
    }
}

// MARK: - Queries

extension OperationCall {
    /// Returns the identifier of the task request in the query, `task=<identifier>`; nil for a push.
    ///
    /// - Throws: `APIError` if a parameter is unknown or repeated, or if the identifier is invalid.
    fileprivate func task() throws(APIError) -> String? {
        var task: String?
        try QueryParameter.forEach(of: self.query) { parameter throws(APIError) in
            guard parameter.name == "task" else {
                throw parameter.unknown(among: ["task"], "a diagnosis takes task alone")
            }
            guard IdentifierPattern.isIdentifier(parameter.value.utf8) else { throw .badTaskIdentifier }
            task = parameter.value
        }
        return task
    }
}

extension WhatIf {
    /// - Parameter query: `<parameter>=<value>&...`, each parameter at most once.
    /// - Throws: `APIError` that names the parameter, the fault and the valid values.
    package init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            try self.set(parameter.name, Double(parameter.value), "\"\(parameter.value)\"")
        }
    }
}

extension PushQuestion {
    private static let names = ["topic", "outcome", "since", "until", "limit", "after"]

    /// Parses the query of a list of pushes. Each parameter except `outcome` may occur at most once:
    /// `topic=<topic>&outcome=<words>&since=<ms>&until=<ms>&limit=<count>&after=<next>`.
    ///
    /// - Throws: `APIError` with the parameter's name, the fault and the valid values.
    init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query, repeatable: ["outcome"]) { parameter throws(APIError) in
            switch parameter.name {
            case "topic": self.topic = try parameter.topic()
            case "outcome":
                for word in parameter.words { self.outcomes.insert(try word.word(of: Self.outcomes) { $0 }) }
            case "since": self.since = try parameter.moment()
            case "until": self.until = try parameter.moment()
            case "limit": self.limit = try parameter.integer(Self.limits)
            case "after":
                guard let place = LoggedPush(parameter.value) else {
                    throw .badQuery("after is the next of an answer, not \"\(parameter.value)\".")
                }
                self.after = place
            default:
                throw parameter.unknown(among: Self.names, "pushes take topic, outcome, since, until, limit and after")
            }
        }
        _ = try QueryParameter.period(since: self.since ?? 0, until: self.until)
    }
}

extension EventSelection {
    private static let parameters = ["kind", "since", "until", "limit", "before"]

    /// Parses the query of a list of events: `kind=task&since=<ms>&until=<ms>&limit=100&before=<place>`. By default, it
    /// selects the newest events.
    ///
    /// - Throws: `APIError` with the parameter's name, the fault and the valid values.
    package init(query: ByteView) throws(APIError) {
        self.init()
        try QueryParameter.forEach(of: query) { parameter throws(APIError) in
            switch parameter.name {
            case "kind":
                guard let kind = Kind(rawValue: parameter.value) else {
                    throw .badQuery("kind is push, task, conditions or subscription, not \"\(parameter.value)\".")
                }
                self.kind = kind
            case "since": self.since = try parameter.moment()
            case "until": self.until = try parameter.moment()
            case "limit": self.limit = try parameter.integer(1...Self.limitMax)
            case "before":
                guard let place = HistoryCursor(parameter.value) else {
                    throw .badQuery("before must be the next value of the previous page.")
                }
                self.before = place
            default: throw parameter.unknown(among: Self.parameters, "events take kind, since, until, limit and before")
            }
        }
        _ = try QueryParameter.period(since: self.since ?? 0, until: self.until)
    }
}

/// The query of a request for one push: empty, or `device=<token>`.
package struct PushQuery {
    /// The device of the requested push; nil for the device that last received a push with this id.
    package let device: DeviceToken?

    /// - Throws: `APIError` that names the valid parameter.
    package init(_ query: ByteView) throws(APIError) {
        guard !query.isEmpty else {
            self.device = nil
            return
        }
        guard query.starts(with: "device=") else {
            throw .badQuery("A push takes the parameter device=<token> alone, once.")
        }
        guard let device = DeviceToken(hex: query.dropFirst("device=".utf8.count)) else { throw .badDeviceToken }
        self.device = device
    }
}
