import Engine
import Policy
import WakeGateTestKit
import Wire

/// The rows of a store that gateways share.
///
/// Each step of the engine begins by loading every row, and ends by writing the changes.
final class SharedRows {
    private struct Row {
        var device: SharedDevice
        var topic: TopicIndex
        var due: Instant?
        var ready: [SharedDeviceChange.ReadyLane] = []
    }

    private let rig: DispatchRig
    private let topicCount: Int
    private var rows: [DeviceToken: Row] = [:]
    /// The devices of wakes; nil for wakes that have ended.
    private var wakes: [WakeID: DeviceToken?] = [:]
    private var counters: [TopicIndex: ActivityCounters] = [:]
    private var total = ActivityCounters()
    /// The state of every device at the end of the last step; nil if time or the policy has changed since.
    private var written: [DeviceToken: FrozenDevice]?
    private(set) var faults: [String] = []

    init(_ rig: DispatchRig, topicCount: Int) {
        self.rig = rig
        self.topicCount = topicCount
        rig.engine.useSharedStore()
        rig.dispatcher.useSharedStore { _ in false }
        let names = (0..<topicCount).map { EngineRig.topicName($0) }
        do throws(StoreError) {
            try rig.engine.appendTopics(names)
        } catch {
            self.faults.append(error.message)
        }
        self.load()
    }

    private func check(_ isSo: Bool, _ rule: String) {
        if !isSo { self.faults.append("against the rule that \(rule)") }
    }

    private func devices(_ tokens: some Sequence<DeviceToken>) -> [DeviceToken: FrozenDevice] {
        tokens.reduce(into: [:]) { devices, token in
            devices[token] = self.rig.engine.find(token).map { FrozenDevice(self.rig.engine.snapshot($0)) }
        }
    }

    /// Ends a step: its changes are durable.
    ///
    /// - Parameter isFollowedAtOnce: true if the next step begins at the same time and under the same policy.
    func commit(isFollowedAtOnce: Bool) {
        self.write(self.rig.engine.takeSharedChanges())
        for (topic, added) in self.rig.engine.takeSharedCounts() {
            self.counters[topic, default: ActivityCounters()] += added
            self.total += added
        }
        self.written = isFollowedAtOnce ? self.devices(self.rows.keys) : nil
        self.rig.dispatcher.committed(self.unload())
    }

    /// Performs a step that fails, so that nothing of it has happened.
    func fail() {
        self.load()
        let streams = self.unload()
        _ = self.rig.output.take()
        self.check(self.rig.dispatcher.undo(streams).isEmpty, "no stream ended meanwhile")
    }

    private func unload() -> StreamChanges {
        let streams = self.rig.dispatcher.takeStreamChanges()
        self.rig.engine.unloadAll()
        self.rig.dispatcher.forgetDevices()
        return streams
    }

    /// Begins a step with every row, and performs everything that is due or waits for a slot.
    func load() {
        let engine = self.rig.engine
        engine.setBaseCounters(self.total, byTopic: self.counters)
        do throws(StoreError) {
            for row in self.rows.values.sorted(by: { $0.device.token.isBefore($1.device.token) }) {
                _ = try engine.take(row.device)
            }
        } catch {
            self.faults.append(error.message)
        }
        engine.beginSharedStep(now: self.rig.rig.instant, deviceCount: self.rows.count)
        self.checkRows()
        while !self.rig.dispatcher.advance(to: self.rig.rig.instant, devicesMax: 1000) {}
    }

    /// Checks that the engine has loaded what the last step has written, and that the columns by which gateways select
    /// rows agree with it.
    private func checkRows() {
        let engine = self.rig.engine
        self.check(engine.nextDue == self.rows.values.compactMap(\.due).min(), "rows have their due times")
        for topic in (0..<self.topicCount).map({ TopicIndex(rawValue: UInt32($0)) }) {
            let ready = self.rows.values.count { row in
                row.topic == topic && row.ready.contains { $0.target == .push }
            }
            self.check(engine.readyCount(topic) == ready, "rows say which pushes wait for a slot")
        }
        self.check(self.total.gauges.devices == Int64(self.rows.count), "each device is counted once")
        let open = Set(self.wakes.filter { $0.value != nil }.keys)
        let inFlight = self.rows.keys.compactMap { engine.find($0) }.flatMap { engine.wakesInFlight($0) }
        self.check(open == Set(inFlight), "the wakes that have not ended are in flight")
        // A snapshot shows a device under a new policy or at a later time.
        guard let written = self.written else { return }
        self.check(self.devices(self.rows.keys) == written, "a loaded row equals the written one")
    }

    private func write(_ changes: [SharedDeviceChange]) {
        for (change, next) in zip(changes, changes.dropFirst()) {
            self.check(change.device.token.isBefore(next.device.token), "changes come in the order of tokens")
        }
        for change in changes {
            let token = change.device.token
            self.check(change.isNew == (self.rows[token] == nil), "a device is new once")
            var row = self.rows[token] ?? Row(device: change.device, topic: change.topic)
            row.device = change.device
            row.topic = change.topic
            if case .at(let due) = change.due {
                self.check(row.due != due, "a reported due time differs from the previous one")
                row.due = due
            }
            if let ready = change.ready { row.ready = ready }
            self.rows[token] = row
            for (wake, _) in change.launched {
                self.check(self.wakes.updateValue(token, forKey: wake) == nil, "a wake is launched once")
            }
            for wake in change.ended {
                self.check(self.wakes.updateValue(nil, forKey: wake) == .some(token), "a wake ends once")
            }
        }
    }
}
