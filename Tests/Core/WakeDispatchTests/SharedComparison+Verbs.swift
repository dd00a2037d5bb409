import Engine
import Policy
import WakeGateTestKit
import Wire

/// Random operations.
extension SharedComparison {
    static let names = ["com.example.feed", "com.example.sync", "org.example.index", "org.example.copy"]
    static let sessions = ["downloads", "uploads"]

    static func configuration(_ generator: inout SeededGenerator) -> EngineConfiguration {
        var configuration = EngineRig.openToTasks([
            (.launchInterval, Double(generator.pick([1, 30, 900]))),
            (.dailyLaunches, Double(generator.pick([3, 20, 100]))),
            (.immediateBurst, Double(generator.pick([1, 5]))),
            (.maxAttempts, Double(generator.pick([1, 3]))),
            (.executionWindow, Double(generator.pick([5, 30]))),
            (.processingInterval, Double(generator.pick([1, 60, 3600]))),
            (.continuedMax, Double(generator.pick([1, 3]))),
            (.criticalBattery, generator.pick([0.1, 0.5])),
            (.refreshFlex, Double(generator.pick([0, 60, 3600]))),
            // Warnings are due times of an engine with its own store only. Rows contain the due times of the policy.
            (.expirationLead, 0),
        ])
        configuration.openRegistration = !generator.once(in: 4)
        configuration.devicesMax = generator.pick([5, 100])
        configuration.devicesPerTopicMax = generator.pick([4, 100])
        configuration.taskRequestsMax = generator.pick([6, 1000])
        configuration.taskRequestsPerTopicMax = generator.pick([4, 1000])
        configuration.taskBytesMax = generator.pick([1500, 1_000_000])
        configuration.taskBytesPerTopicMax = generator.pick([1000, 1_000_000])
        configuration.pendingBytesMax = generator.pick([300, 1_000_000])
        configuration.pendingBytesPerTopicMax = generator.pick([200, 1_000_000])
        configuration.pushRate.pushesMax = generator.pick([3, 1000])
        configuration.pushRate.seconds = generator.pick([10, 60])
        return configuration
    }

    /// Opens streams that take everything.
    func begin() throws {
        for topic in 0..<Self.topicCount { try self.subscribe(DispatchRig.address(topic), topic, nil) }
    }

    /// Advances the time and performs an operation.
    func performNext() throws {
        let milliseconds = self.generator.pick([1, 7, 250, 1000, 5003, 31_000])
        try self.advance(by: self.generator.once(in: 25) ? 4_000_000 : Int64(milliseconds))
        let device = self.generator.number(below: Self.deviceCount)
        switch self.generator.number(below: 24) {
        case 0..<7: try self.push(device)
        case 7: try self.registration(device)
        case 8..<10: try self.conditions(device)
        case 10..<13: try self.request(device)
        case 13: try self.transfers(device)
        case 14..<18: try self.answer()
        case 18..<22: try self.stream()
        case 22: try self.simulate(device)
        default:
            if self.generator.once(in: 3) {
                var configuration = Self.configuration(&self.generator)
                configuration.devicesMax = 100
                try self.reconfigure(configuration)
            }
        }
    }

    private func topic() -> Int { self.generator.once(in: 12) ? 1 : 0 }

    private func push(_ device: Int) throws {
        let token = EngineRig.token(device)
        let topic = EngineRig.topicName(self.generator.once(in: 12) ? (device + 1) % 2 : device % 2)
        let now = self.shared.now
        let expiration = self.generator.pick([
            Expiration.absent, .absent, .nowOrNever, .at(now + 5000), .at(now + 100_000),
        ])
        let priority = self.generator.pick([Priority.immediate, .considerate])
        let wakes = !self.generator.once(in: 8)
        let isDryRun = self.generator.once(in: 8)
        self.lastPush += 1
        // Some pushes repeat the apns-id of an earlier one.
        let isNamed = self.generator.once(in: 2)
        let number = isNamed && self.generator.once(in: 3) ? self.lastPush / 2 : self.lastPush
        let trace = self.generator.once(in: 3) ? EngineRig.trace(Int(number)) : nil
        let filling = String(repeating: "x", count: self.generator.number(below: 120))
        try self.perform("push \(device) \(expiration) \(priority) \(isDryRun)", [token]) { dispatcher, _, _ in
            var traceBytes = ByteBuffer()
            if let trace { PushTrace.write(trace, state: ByteView(), to: &traceBytes) }
            return "{\"n\":\(number),\"x\":\"\(filling)\"}".withByteView { payload in
                topic.withByteView { topic in
                    var push = Push()
                    push.token = token
                    push.topic = topic
                    push.apnsID = EngineRig.apnsID(number)
                    push.hasClientID = isNamed
                    push.priority = priority
                    push.payload = payload
                    push.wakes = wakes
                    push.isDryRun = isDryRun
                    push.trace = traceBytes.view
                    do throws(Refusal) {
                        let answer = try dispatcher.push(push, expiration)
                        let (eligibleAt, held) = (answer.eligibleAt as Any, answer.held as Any)
                        return "\(answer.disposition) \(eligibleAt) \(held) \(answer.wake != nil)"
                    } catch {
                        return "\(error)"
                    }
                }
            }
        }
    }

    private func registration(_ device: Int) throws {
        let token = EngineRig.token(device)
        let topic = EngineRig.topicName(self.generator.once(in: 3) ? (device + 1) % 2 : device % 2)
        if self.generator.once(in: 2) {
            try self.perform("register \(device)", [token]) { dispatcher, _, _ in
                switch topic.withByteView({ dispatcher.register(token, topic: $0) }) {
                case .device: "device"
                case .newDevice: "newcomer"
                case .refused(let refusal): "\(refusal)"
                }
            }
        } else {
            try self.perform("unregister \(device)", [token]) { dispatcher, engine, _ in
                engine.find(token).map { dispatcher.unregister($0) }
                return ""
            }
        }
    }

    private func conditions(_ device: Int) throws {
        let token = EngineRig.token(device)
        var report = ConditionsReport()
        switch self.generator.number(below: 8) {
        case 7: report.memoryPressure = self.generator.pick(Conditions.MemoryPressure.allCases)
        case 0: report.batteryLevel = self.generator.pick([0.05, 0.3, 1])
        case 1, 2: report.appState = self.generator.pick(Conditions.AppState.allCases)
        case 3: report.backgroundRefresh = self.generator.pick(Conditions.BackgroundRefresh.allCases)
        case 4: report.thermalState = self.generator.pick(Conditions.ThermalState.allCases)
        case 5: report.network = self.generator.once(in: 2)
        default:
            report.charging = self.generator.once(in: 2)
            report.lowPowerMode = self.generator.once(in: 2)
        }
        try self.perform("conditions \(device) \(report)", [token]) { dispatcher, engine, _ in
            engine.find(token).map { "\(dispatcher.conditions(report, $0))" } ?? ""
        }
    }

    private func request(_ device: Int) throws {
        let token = EngineRig.token(device)
        let name = self.generator.pick(Self.names)
        if self.generator.once(in: 6) {
            let isAll = self.generator.once(in: 3)
            try self.perform("cancel \(device) \(name)", [token]) { dispatcher, engine, _ in
                guard let index = engine.find(token) else { return "" }
                dispatcher.cancelTask(isAll ? nil : name, index)
                return ""
            }
            return
        }
        let kind = self.generator.pick([
            TaskSubmission.Kind.appRefresh, .processing([]), .processing(.network), .processing(.externalPower),
            .continued(.queue), .continued(.fail), .continued(.queue),
        ])
        let earliest = self.generator.once(in: 3) ? self.shared.now + 40_000 : nil
        let details = TaskDetails(
            title: self.generator.once(in: 2) ? "A title" : nil,
            resources: self.generator.once(in: 5) ? ["gpu"] : []
        )
        try self.perform("submit \(device) \(name) \(kind)", [token]) { dispatcher, engine, _ in
            guard let index = engine.find(token), engine.identity(index).isRegistered else { return "" }
            let request = IncomingTask(identifier: name, kind: kind, earliestBegin: earliest, details: details)
            do throws(TaskRejection) {
                let answer = try dispatcher.submit(request, index)
                return "\(answer.disposition) \(answer.eligibleAt as Any) \(answer.held as Any) \(answer.wake != nil)"
            } catch {
                return "\(error)"
            }
        }
    }

    private func transfers(_ device: Int) throws {
        let token = EngineRig.token(device)
        let session = self.generator.pick(Self.sessions)
        let id = self.generator.once(in: 2) ? "event-\(self.generator.number(below: 40))" : nil
        let count = UInt64(self.generator.number(in: 1...3))
        try self.perform("transfers \(device) \(session)", [token]) { dispatcher, engine, _ in
            guard let index = engine.find(token), engine.identity(index).isRegistered else { return "" }
            do throws(TaskRejection) {
                try dispatcher.transfersFinished(session: session, count: count, id: id, index)
                return "taken"
            } catch {
                return "\(error)"
            }
        }
    }

    /// Reports something about a wake, usually one that may be in flight.
    private func answer() throws {
        guard !self.wakes.isEmpty else { return }
        let recent = self.generator.once(in: 6) ? self.wakes : Array(self.wakes.suffix(5))
        let wake = self.generator.pick(recent)
        let isPush = (self.kinds[wake] == .push) != self.generator.once(in: 15)
        let fetched = self.generator.pick([FetchResult.newData, .noData, .failed])
        let done = self.generator.pick([TaskResult.success, .failure])
        let tokens = self.twins[wake].flatMap { self.shared.device(of: $0) }.map { [$0] } ?? []
        let choice = self.generator.number(below: 8)
        let milliseconds = Int64(self.generator.pick([1000, 20_000, 500_000]))
        let progress = TaskProgress(completed: UInt64(self.generator.number(below: 50)), total: 50, title: "So far")
        try self.perform("answer \(choice) \(self.kinds[wake] as Any)", tokens) { dispatcher, _, twin in
            switch choice {
            case 0: "\(dispatcher.extend(twin(wake), by: milliseconds))"
            case 1: "\(dispatcher.progress(progress, wake: twin(wake)))"
            case 2: "\(dispatcher.release(twin(wake), reason: "no interpreter"))"
            default: "\(dispatcher.report(isPush ? .push(fetched) : .task(done), wake: twin(wake)))"
            }
        }
    }

    private func simulate(_ device: Int) throws {
        let token = EngineRig.token(device)
        let name = self.generator.pick(Self.names)
        let choice = self.generator.number(below: 4)
        try self.perform("simulate \(device) \(choice)", [token]) { dispatcher, engine, _ in
            guard let index = engine.find(token) else { return "" }
            return switch choice {
            case 0: "\(dispatcher.simulateLaunch(index))"
            case 1: "\(dispatcher.simulateExpiration(index))"
            case 2: "\(dispatcher.simulateLaunch(index, identifier: name))"
            default: "\(dispatcher.simulateExpiration(index, identifier: name))"
            }
        }
    }
}

// MARK: - Streams

extension SharedComparison {
    /// Opens, closes or changes a stream: each topic has one that takes everything, and each device has its own.
    private func stream() throws {
        let isOwn = self.generator.once(in: 2)
        let device = self.generator.number(below: Self.deviceCount)
        let topic = isOwn ? device % 2 : self.generator.number(below: Self.topicCount)
        let address = DispatchRig.address(isOwn ? 10 + device : topic)
        let isOpen = self.local.dispatcher.streams(countMax: 100).contains { $0.address == address }
        guard isOpen else { return try self.subscribe(address, topic, isOwn ? EngineRig.token(device) : nil) }
        switch self.generator.number(below: 8) {
        case 0, 1: try self.endStream(address)
        case 2, 3:
            let isPaused = self.generator.once(in: 2)
            try self.change("pause \(address.number) \(isPaused)") { $0.streamPaused(address, isPaused) }
        case 4 where isOwn:
            let slots = self.generator.number(in: 0...3)
            try self.change("slots \(address.number) \(slots)") { $0.slotsChanged(address, to: slots) }
        case 5: try self.change("drain \(address.number)") { _ = $0.streamDraining(address) { _ in true } }
        default: break
        }
    }

    private func subscribe(_ address: StreamAddress, _ topic: Int, _ token: DeviceToken?) throws {
        let takesPushes = !self.generator.once(in: 5)
        let takesTasks = !self.generator.once(in: 5)
        let request = SubscriptionRequest(
            slots: token == nil ? SubscriptionRequest.slotsMax : self.generator.number(in: 1...3),
            takesPushes: takesPushes,
            tasks: takesTasks ? [IdentifierPattern("com.example.*"), IdentifierPattern("org.example.index")] : [],
            sessions: takesTasks ? [IdentifierPattern(Self.sessions[0])] : [],
            resources: self.generator.once(in: 2) ? ["gpu"] : [],
            reportsConditions: self.generator.once(in: 2),
            devices: token.map { [$0] } ?? [],
            // The order of expirations and launches within a step differs between the engines, so only some streams
            // stall.
            stallsWhenSilent: token != nil || self.loading != .single
        )
        try self.change("subscribe \(address.number) \(takesPushes) \(takesTasks)") { dispatcher in
            _ = EngineRig.topicName(topic).withByteView { dispatcher.subscribed(address, topic: $0, request) }
        }
    }
}
