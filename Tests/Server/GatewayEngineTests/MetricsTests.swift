import Engine
import Foundation
import Gateway
import Policy
import Testing
import WakeGateTestKit

@Suite("Metrics", .timeLimit(.minutes(15)))
struct MetricsTests {
    private func metrics(_ rig: GatewayEngineRig, _ request: Int = 900, named topics: [Int] = []) throws
        -> MetricsReading
    {
        try MetricsReading(rig.ask(request) { $0.metrics(request, named: topics) }.text)
    }

    @Test("Every metric comes once, with its help and type, in the order of the list, whatever has happened")
    func all() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        let reading = try self.metrics(rig)
        #expect(reading.names == Metric.all.map(\.name))
        for metric in Metric.all {
            #expect(reading.kinds[metric.name] == metric.kind.rawValue)
            #expect(reading.helps[metric.name] == metric.help)
            let labels = Set(reading.samples(of: metric.name).flatMap { $0.labels.keys }).subtracting(["le"])
            #expect(labels.isSubset(of: metric.labels), "\(metric.name): \(labels)")
        }
        #expect(Set(Metric.all.map(\.name)).count == Metric.all.count)
    }

    @Test("Counters and gauges say what the statistics say, and every push is accounted for")
    func counts() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...6) { requests in
            requests.subscribe(1, slots: 1)
            requests.push(2, 1)
            requests.push(3, 2)
            requests.push(4, 2)
            requests.push(5, 3, wakes: false)
            requests.push(6, 3, topic: 1)
        }
        try rig.waitForWakes(1)
        let wake = try rig.lastWake()
        try rig.ask(7) { $0.report(7, wake, .newData) }
        try rig.waitForWakes(2)
        let reading = try self.metrics(rig)
        #expect(reading["wakegate_pushes_accepted_total"] == 3)
        #expect(reading["wakegate_pushes_no_wake_total"] == 1)
        #expect(reading["wakegate_pushes_rejected_total", "reason", "DeviceTokenNotForTopic"] == 1)
        #expect(reading["wakegate_pushes_completed_total"] == 1)
        #expect(reading["wakegate_pushes_coalesced_total"] == 1)
        #expect(reading["wakegate_pushes_in_flight"] == 1)
        #expect(reading["wakegate_pushes_unaccounted"] == 0)
        #expect(reading["wakegate_wakes_launched_total"] == 2)
        #expect(reading["wakegate_wakes_ended_total", "result", "newData"] == 1)
        #expect(reading["wakegate_wake_duration_seconds_count", "result", "newData"] == 1)
        #expect(reading["wakegate_launch_lateness_seconds_count"] == 2)
        #expect(reading["wakegate_workers_connected"] == 1)
        #expect(reading["wakegate_worker_slots_busy"] == 1)
        #expect(reading["wakegate_workers_stalled"] == 0)
        #expect(reading["wakegate_connections", "listener", "edge"] == 7)
        #expect(reading["wakegate_certificate_expiry_timestamp_seconds"] == 2_000_000)
        #expect(reading["wakegate_process_start_time_seconds"] == 1000.5)
        #expect((reading["wakegate_process_resident_memory_bytes"] ?? 0) > 1_000_000)
        let descriptors = try #require(reading["wakegate_process_open_fds"])
        #expect(descriptors > 2 && descriptors <= reading["wakegate_process_max_fds"] ?? 0)
    }

    @Test("The bound of the memory of pushes is the one in force")
    func memoryBound() throws {
        var configuration = EngineRig.open()
        configuration.pendingBytesMax = 5000
        let rig = try GatewayEngineRig(SimulatedStore(), configuration)
        defer { rig.stop() }
        #expect(try self.metrics(rig, 900)["wakegate_push_memory_max_bytes"] == 5000)
        configuration.pendingBytesMax = 7000
        rig.step { $0.configure(configuration) }
        #expect(try self.metrics(rig, 901)["wakegate_push_memory_max_bytes"] == 7000)
    }

    @Test("A device without a worker for its topic is told, and for how long its push could have been launched")
    func withoutWorker() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...3) { requests in
            requests.push(1, 1)
            requests.push(2, 2, topic: 1)
            requests.subscribe(3, topic: 1)
        }
        var reading = try self.metrics(rig)
        #expect(reading["wakegate_devices_without_worker"] == 1)
        #expect(reading["wakegate_devices_held", "reason", "worker"] == 1)
        try rig.ask(4) { $0.subscribe(4) }
        reading = try self.metrics(rig, 901)
        #expect(reading["wakegate_devices_without_worker"] == 0)
        #expect(reading["wakegate_oldest_due_age_seconds"] == 0)
    }

    @Test("Topics that the configuration names have their own series, and all others one together")
    func topics() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1...4) { requests in
            requests.push(1, 1, topic: 0)
            requests.push(2, 2, topic: 1)
            requests.push(3, 3, topic: 2)
            requests.push(4, 4, topic: 2)
        }
        let reading = try self.metrics(rig, named: [1, 8])
        let accepted = reading.samples(of: "wakegate_topic_pushes_accepted_total")
        #expect(accepted.map { $0.labels["topic"] } == ["com.example.app1", "com.example.app8", "(other)"])
        #expect(accepted.map(\.value) == [1, 0, 3])
        #expect(reading["wakegate_topic_pushes_pending", "topic", "(other)"] == 3)
    }

    @Test("Pushes count with the commit that made them durable, how many there were, and how long they waited for it")
    func commits() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        let before = try self.metrics(rig)
        rig.gate.close()
        rig.step { $0.push(1, 1) }
        try rig.waitForCommit()
        rig.step { requests in
            requests.push(2, 2)
            requests.push(3, 3)
        }
        rig.gate.open()
        try rig.answers(1...3)
        let reading = try self.metrics(rig, 901)
        func grown(_ name: String) -> Double { (reading[name] ?? -1) - (before[name] ?? -1) }
        #expect(grown("wakegate_push_admit_to_durable_seconds_count") == 3)
        #expect(grown("wakegate_push_admit_to_durable_seconds_sum") > 0)
        #expect(grown("wakegate_commit_duration_seconds_count") == 2)
        #expect(grown("wakegate_commit_batch_pushes_sum") == 3)
        let atMostTwo = reading["wakegate_commit_batch_pushes_bucket", "le", "2"]
        #expect(atMostTwo == reading["wakegate_commit_batch_pushes_count"])
    }

    @Test("After a failed commit metrics say so, and count what was durable")
    func storeFailed() throws {
        let script = try FailureScript(failingAt: FailureScript.commitCount - 1, .allCases[0])
        let rig = script.rig
        defer { rig.stop() }
        let reading = try self.metrics(rig)
        #expect(reading["wakegate_store_failed"] == 1)
        #expect(reading["wakegate_pushes_unaccounted"] == 0)
        let accepted = script.durable.integer("pushes", "accepted")
        #expect(reading["wakegate_pushes_accepted_total"] == accepted.map { Double($0) })
    }

    @Test("No device token and no apns-id is in it")
    func secrets() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1) { $0.push(1, 1) }
        let text = try rig.ask(900) { $0.metrics(900) }.text
        #expect(!text.contains(GatewayEngineRig.apnsID(1)))
        #expect(text.range(of: "[0-9a-f]{32}", options: .regularExpression) == nil)
    }
}
