import Bytes
import DeviceEngine
import Foundation
import LaunchPolicy
import WakeDispatch
import WakeGateTestKit

/// Plays a trace of the simulator to the production dispatcher and engine, each device with a stream of its own, and
/// reads what happened from what the engine tells of it.
final class TraceDriver {
    private struct Planned {
        let at: Int64
        let device: Int
        let wake: WakeID
        let answer: String
    }

    private var configuration = EngineRig.open()
    private var script: [(answer: String, delay: Int64)] = [("newData", 1000)]
    private var until: Int64?
    private lazy var rig = DispatchRig(self.configuration, start: 0)
    private var names: [String] = []
    private var streams: [Int] = []
    private var streamCount = 0
    private var launches: [Int] = []
    private var planned: [Planned] = []
    private var identifiers: [APNsID: String] = [:]
    /// What happened, by device.
    private(set) var lines: [String: [String]] = [:]
    private(set) var deliveryCount = 0

    var books: Books { self.rig.engine.totals }

    /// Takes the trace's next line.
    func take(_ line: String) throws {
        let value = try JSONSerialization.jsonObject(with: Data(line.utf8))
        guard let object = value as? [String: Any] else { throw CocoaError(.propertyListReadCorrupt) }
        guard let time = object["t"] as? Double, let name = object["device"] as? String else {
            return try self.header(object)
        }
        let moment = Self.milliseconds(time)
        if let until = self.until, moment > until { return }
        self.advance(to: moment)
        self.rig.rig.pass(moment - self.rig.rig.now)
        _ = self.rig.dispatcher.advance(to: self.rig.rig.instant, devicesMax: .max)
        let device = self.number(name)
        if let push = object["push"] as? [String: Any] { self.push(push, device) }
        if let report = object["conditions"] as? [String: Any] {
            _ = self.rig.dispatcher.conditions(Self.report(report), self.rig.rig.index(device))
        }
        self.collect()
        self.settle()
    }

    /// The trace is at its end.
    func finish() {
        self.advance(to: self.until ?? .max)
    }

    private static func milliseconds(_ seconds: Double) -> Int64 { Int64((seconds * 1000).rounded()) }
}

// MARK: - Lines

extension TraceDriver {
    private func header(_ object: [String: Any]) throws {
        for (name, value) in object["policy"] as? [String: Double] ?? [:] {
            guard let name = Parameters.Name(rawValue: name) else { throw CocoaError(.propertyListReadCorrupt) }
            try self.configuration.policy.set(name, to: value)
        }
        if let steps = object["worker"] as? [[Any]] {
            self.script = steps.compactMap { step in
                guard let answer = step[0] as? String, let delay = step[1] as? Double else { return nil }
                return (answer, Self.milliseconds(delay))
            }
        }
        if let until = object["until"] as? Double { self.until = Self.milliseconds(until) }
    }

    private func number(_ name: String) -> Int {
        if let number = self.names.firstIndex(of: name) { return number }
        let number = self.names.count
        self.names.append(name)
        self.streams.append(0)
        self.launches.append(0)
        self.rig.rig.register(number)
        self.subscribe(number)
        return number
    }

    private func subscribe(_ device: Int) {
        self.streamCount += 1
        self.streams[device] = self.streamCount
        self.rig.subscribe(self.streamCount, slots: 4096, devices: [device])
    }

    private func push(_ push: [String: Any], _ device: Int) {
        guard let id = push["apnsID"] as? String,
            let priority = Priority(rawValue: UInt8(push["priority"] as? Int ?? 10))
        else { return }
        var expiration = ArrivingPush.Expiration.absent
        if let moment = push["expiration"] as? Double {
            expiration = moment == 0 ? .nowOrNever : .at(Instant(milliseconds: Self.milliseconds(moment)))
        }
        self.identifiers[EngineRig.apnsID(self.rig.rig.lastPush + 1)] = id
        self.rig.push(device, priority, expiration)
    }

    private static func report(_ object: [String: Any]) -> ConditionsReport {
        var report = ConditionsReport()
        report.appState = (object["appState"] as? String).flatMap(Conditions.AppState.init)
        report.backgroundRefresh = (object["backgroundRefresh"] as? String).flatMap(Conditions.BackgroundRefresh.init)
        report.thermalState = (object["thermalState"] as? String).flatMap(Conditions.ThermalState.init)
        report.batteryLevel = object["batteryLevel"] as? Double
        report.charging = object["charging"] as? Bool
        report.lowPowerMode = object["lowPowerMode"] as? Bool
        report.network = object["network"] as? Bool
        return report
    }
}

// MARK: - Time

extension TraceDriver {
    /// Does all that happens by itself up to `limit`, each thing at its own millisecond.
    private func advance(to limit: Int64) {
        while let next = [self.rig.engine.nextDue?.milliseconds, self.planned.map(\.at).min()].compactMap({ $0 }).min(),
            next <= limit
        {
            self.rig.rig.pass(max(0, next - self.rig.rig.now))
            self.settle()
        }
    }

    /// Does all that happens at this moment: answers first.
    private func settle() {
        // The engine is told the time, and looks at nothing before the answers are in.
        _ = self.rig.dispatcher.advance(to: self.rig.rig.instant, devicesMax: 0)
        repeat {
            while let first = self.planned.firstIndex(where: { $0.at <= self.rig.rig.now }) {
                let planned = self.planned.remove(at: first)
                self.answer(planned)
                self.collect()
            }
            _ = self.rig.dispatcher.advance(to: self.rig.rig.instant, devicesMax: .max)
            self.collect()
        } while self.planned.contains { $0.at <= self.rig.rig.now }
    }

    private func answer(_ planned: Planned) {
        if let result = FetchResult(rawValue: planned.answer) {
            self.rig.report(result, planned.wake)
        } else {
            self.rig.endStream(self.streams[planned.device])
            self.collect()
            self.subscribe(planned.device)
        }
    }
}

// MARK: - What happened

extension TraceDriver {
    /// Notes what happened since the last call, and plans the answers to what was launched.
    private func collect() {
        // Late answers change nothing of a device, and keep its stream from stalling: the simulator's never does.
        for wake in self.rig.output.expirations { self.rig.report(.noData, wake) }
        for delivery in self.rig.takeDeliveries() {
            self.deliveryCount += 1
            guard let device = self.names.indices.first(where: { EngineRig.token($0) == delivery.token }) else {
                continue
            }
            let step = self.script[self.launches[device] % self.script.count]
            self.launches[device] += 1
            let at = self.rig.rig.now + step.delay
            guard step.answer != "none", at < delivery.deadline.milliseconds else { continue }
            self.planned.append(Planned(at: at, device: device, wake: delivery.wake, answer: step.answer))
        }
        var events: [HistoryEvent] = []
        self.rig.engine.takeEvents(into: &events)
        for event in events {
            let device = self.names.indices.first {
                HistoryEvent.device(of: EngineRig.token($0), EngineRig.historyKey) == event.device
            }
            if let device { self.note(event, device) }
        }
    }

    private func note(_ event: HistoryEvent, _ device: Int) {
        let what: String
        switch event.kind {
        case .registered, .removed, .conditions, .extended: return
        case .taskLaunch, .taskResult, .taskSubmitted, .taskDropped, .taskExtended, .transfersFinished, .namePart:
            return
        case .push(let disposition): what = "push \(disposition)"
        case .launch(let attempt, let coalesced): what = "launch \(coalesced) \(attempt)"
        case .result(let outcome): what = "result \(outcome.rawValue)"
        case .discard(let reason): what = "discard \(reason.rawValue)"
        }
        let id = event.apnsID.flatMap { self.identifiers[$0] } ?? "nobody"
        self.lines[self.names[device], default: []].append("\(event.at.milliseconds) \(id) \(what)")
    }
}
