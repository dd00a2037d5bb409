import Engine
import Policy
import Wire

/// An engine that is restored from records that may be damaged: it rejects the records, or runs with them.
enum RestoredEngine {
    /// The number of rows that are checked. A table with a gap is rejected anyway.
    private static let devicesMax: UInt32 = 64
    private static let spans: [Int64] = [0, 1, 30_000, 900_000, 86_400_000, 2_600_000_000, 400_000_000_000]

    static func check(_ input: ByteView, losesWakes: Bool) throws(BrokenPromise) {
        var number: UInt64 = 0
        var configuration = EngineConfiguration()
        configuration.permittedTasks = .all
        let engine = DeviceEngine(
            configuration: configuration,
            now: Instant(milliseconds: 0),
            historyKey: HashKey((1, 2))
        ) {
            number += 1
            return (number, number)
        }
        guard let (now, deviceCount) = self.restore(engine, input, losesWakes: losesWakes) else { return }
        try self.checkCounters(engine, deviceCount, after: "restoring")
        var moment = now
        for span in self.spans {
            moment = moment + span
            while !engine.advance(to: moment, devicesMax: 16) {}
            _ = engine.oldestDueMilliseconds
            while engine.popExpiredWake() != nil {}
            for number in 0..<deviceCount {
                self.step(engine, DeviceIndex(rawValue: number), Int(span) + Int(number))
            }
            var batch = RecordBatch()
            engine.takeStep(into: &batch)
            try self.checkCounters(engine, deviceCount, after: "\(span) ms")
        }
    }

    /// - Returns: the policy time at which the engine continues, and the number of its devices; nil if the records are
    ///   rejected.
    private static func restore(
        _ engine: DeviceEngine,
        _ input: ByteView,
        losesWakes: Bool
    ) -> (now: Instant, deviceCount: UInt32)? {
        var records = RecordRun(input)
        var now = Instant(milliseconds: 1_700_000_000_000)
        var deviceCount: UInt32 = 0
        do throws(StoreError) {
            while let (key, content) = records.next() {
                switch key.kind {
                case .clock: now = ClockRecord(stored: content)?.now ?? now
                case .device where key.index >= self.devicesMax: return nil
                case .device:
                    deviceCount += 1
                    try engine.restore(key, content)
                case .topic, .tasks: try engine.restore(key, content)
                default: break
                }
            }
            try engine.finishRestoring(now: now)
            if losesWakes { engine.loseEveryWake() }
        } catch {
            return nil
        }
        return (now, deviceCount)
    }

    private static func step(_ engine: DeviceEngine, _ device: DeviceIndex, _ choice: Int) {
        _ = engine.snapshot(device)
        let wake = engine.claim(device, hasSlot: { _ in true })?.id ?? engine.wakesInFlight(device).last
        if let wake {
            _ = engine.extend(wake, by: 5000)
            _ = engine.progress(TaskProgress(completed: UInt64(choice), total: 9), wake: wake)
        }
        self.stepTasks(engine, device, wake, choice)
        switch choice % 7 {
        case 0: _ = engine.launchForced(device)
        case 1: if let wake { _ = engine.report(.push(.failed), wake: wake) }
        case 2: if let wake { _ = engine.report(.push(.newData), wake: wake) }
        case 3: if let wake { _ = engine.release(wake) }
        case 4: _ = engine.expireForced(device)
        case 5: engine.unregister(device)
        default:
            guard engine.identity(device).isRegistered else { return }
            var push = Push()
            push.apnsID = APNsID(first: 1, second: UInt64(choice), upperCase: 0)
            push.hasClientID = true
            push.payload = ByteView("{}")
            push.wakes = true
            _ = engine.catchUp(device)
            _ = try? engine.accept(push, .absent, device: device, workerIsFree: choice % 2 == 0)
        }
    }

    private static func stepTasks(_ engine: DeviceEngine, _ device: DeviceIndex, _ wake: WakeID?, _ choice: Int) {
        var report = ConditionsReport()
        report.appState = choice % 3 == 0 ? .active : choice % 3 == 1 ? .background : .forceQuit
        _ = engine.conditions(report, device)
        if let wake { _ = engine.report(.task(choice % 2 == 0 ? .success : .failure), wake: wake) }
        guard engine.identity(device).isRegistered else { return }
        let kinds: [TaskSubmission.Kind] = [.appRefresh, .processing(.externalPower), .continued(.queue)]
        let request = IncomingTask(identifier: "a\(choice % 4)", kind: kinds[choice % 3])
        _ = try? engine.submit(request, device: device, hasSlot: choice % 2 == 0)
        try? engine.transfersFinished(session: "s", count: 1, id: "\(choice)", device: device)
        if choice % 5 == 0 { engine.cancelTask(nil, device: device) }
    }

    /// Checks the counts of the devices. Other counters may still be damaged.
    private static func checkCounters(
        _ engine: DeviceEngine,
        _ deviceCount: UInt32,
        after what: String
    ) throws(BrokenPromise) {
        var (pending, inFlight): (Int64, Int64) = (0, 0)
        for number in 0..<deviceCount {
            let device = DeviceIndex(rawValue: number)
            let state = engine.snapshot(device).state
            if state.pending != nil { pending += 1 }
            if let push = state.inFlight?.push, push.handle != .none { inFlight += 1 }
        }
        let counters = engine.totals
        try promise(
            counters.pending == pending && counters.inFlight == inFlight,
            "the counters are wrong after \(what)"
        )
    }
}
