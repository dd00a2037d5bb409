import Engine
import Foundation
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Metrics", .timeLimit(.minutes(15)))
struct MetricsTests {
    @Test("Every metric appears once, with its help and type, in the order of the list")
    func all() throws {
        let rig = try GatewayEngineRig()
        let reading = try rig.metrics()
        #expect(reading.names == Metric.all.map(\.name))
        for metric in Metric.all {
            #expect(reading.kinds[metric.name] == metric.kind.rawValue)
            #expect(reading.helps[metric.name] == metric.help)
            let labels = Set(reading.samples(of: metric.name).flatMap { $0.labels.keys }).subtracting(["le"])
            #expect(labels.isSubset(of: metric.labels), "\(metric.name): \(labels)")
        }
        #expect(Set(Metric.all.map(\.name)).count == Metric.all.count)
    }

    @Test("Counters and gauges agree with the statistics, and every push is accounted for")
    func counts() throws {
        let rig = try GatewayEngineRig()
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
        let reading = try rig.metrics()
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

    @Test("The memory limit of pushes and of tasks is the current one", arguments: ["push", "task"])
    func memoryBound(kind: String) throws {
        var configuration = EngineRig.open()
        func bound(_ bytes: Int) {
            if kind == "push" { configuration.pendingBytesMax = bytes } else { configuration.taskBytesMax = bytes }
        }
        bound(5000)
        let rig = try GatewayEngineRig(SimulatedStore(), configuration)
        #expect(try rig.metrics(900)["wakegate_\(kind)_memory_max_bytes"] == 5000)
        bound(7000)
        rig.step { [configuration] in $0.configure(configuration) }
        #expect(try rig.metrics(901)["wakegate_\(kind)_memory_max_bytes"] == 7000)
    }

    @Test("A device without a worker for its topic is counted, with how long its push has been due")
    func withoutWorker() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1...3) { requests in
            requests.push(1, 1)
            requests.push(2, 2, topic: 1)
            requests.subscribe(3, topic: 1)
        }
        var reading = try rig.metrics()
        #expect(reading["wakegate_devices_without_worker"] == 1)
        #expect(reading["wakegate_devices_held", "reason", "worker"] == 1)
        try rig.ask(4) { $0.subscribe(4) }
        reading = try rig.metrics(901)
        #expect(reading["wakegate_devices_without_worker"] == 0)
        #expect(reading["wakegate_oldest_due_age_seconds"] == 0)
    }

    @Test("Configured topics have their own series, and all others share one")
    func topics() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1...4) { requests in
            requests.push(1, 1, topic: 0)
            requests.push(2, 2, topic: 1)
            requests.push(3, 3, topic: 2)
            requests.push(4, 4, topic: 2)
        }
        let reading = try rig.metrics(named: [1, 8])
        let accepted = reading.samples(of: "wakegate_topic_pushes_accepted_total")
        #expect(accepted.map { $0.labels["topic"] } == ["com.example.app1", "com.example.app8", "(other)"])
        #expect(accepted.map(\.value) == [1, 0, 3])
        #expect(reading["wakegate_topic_pushes_pending", "topic", "(other)"] == 3)
    }

    @Test("Pushes are counted with the commit that made them durable, with their number and their wait")
    func commits() throws {
        let rig = try GatewayEngineRig()
        let before = try rig.metrics()
        rig.gate.close()
        rig.step { $0.push(1, 1) }
        try rig.waitForCommit()
        rig.step { requests in
            requests.push(2, 2)
            requests.push(3, 3)
        }
        rig.gate.open()
        try rig.answers(1...3)
        let reading = try rig.metrics(901)
        func grown(_ name: String) -> Double { (reading[name] ?? -1) - (before[name] ?? -1) }
        #expect(grown("wakegate_push_admit_to_durable_seconds_count") == 3)
        #expect(grown("wakegate_push_admit_to_durable_seconds_sum") > 0)
        #expect(grown("wakegate_commit_duration_seconds_count") == 2)
        #expect(grown("wakegate_commit_batch_pushes_sum") == 3)
        let atMostTwo = reading["wakegate_commit_batch_pushes_bucket", "le", "2"]
        #expect(atMostTwo == reading["wakegate_commit_batch_pushes_count"])
    }

    @Test("Metrics contain no device token and no apns-id")
    func secrets() throws {
        let rig = try GatewayEngineRig()
        try rig.ask(1) { $0.push(1, 1) }
        let text = try rig.ask(900) { $0.metrics(900) }.text
        #expect(!text.contains(GatewayEngineRig.apnsID(1)))
        #expect(text.range(of: "[0-9a-f]{32}", options: .regularExpression) == nil)
    }
}

@Suite("Metrics of background tasks", .timeLimit(.minutes(15)))
struct TaskMetricsTests {
    /// Returns a gateway after a refresh has ended, and with every other possible state of requests and transfers.
    private func busy() throws -> GatewayEngineRig {
        let rig = try GatewayEngineRig(SimulatedStore(), EngineRig.openToTasks())
        try rig.ask(1...5) { requests in
            requests.subscribe(1, tasks: ["refresh"], sessions: ["downloads"])
            for device in 1...4 { requests.register(device + 1, device) }
        }
        try rig.ask(6) { $0.submit(6, 1) }
        try rig.waitForWakes(1)
        let wake = try rig.lastWake()
        try rig.ask(7...16) { requests in
            requests.finish(7, 1, "downloads", 2)
            requests.report(8, wake, TaskResult.success)
            requests.submit(9, 2, "clean", .processing([]))
            requests.submit(10, 2, "clean", .processing([]))
            requests.submit(11, 2, "gone", .processing([]))
            requests.cancel(12, 2, "gone")
            requests.submit(13, 2, "export", .continued(.queue))
            requests.submit(14, 3, "clean", .processing([]))
            requests.unregister(15, 3)
            requests.finish(16, 4, "downloads", 3)
        }
        try rig.waitForWakes(2)
        return rig
    }

    @Test("Requests, transfers and wakes are counted by kind, reason and result, each in one place")
    func counts() throws {
        let rig = try self.busy()
        let reading = try rig.metrics()
        #expect(reading["wakegate_tasks_submitted_total", "kind", "appRefresh"] == 1)
        #expect(reading["wakegate_tasks_submitted_total", "kind", "processing"] == 4)
        #expect(reading["wakegate_tasks_submitted_total", "kind", "continued"] == 0)
        #expect(reading["wakegate_tasks_refused_total", "reason", "NotForeground"] == 1)
        #expect(reading["wakegate_tasks_replaced_total"] == 1)
        #expect(reading["wakegate_tasks_cancelled_total"] == 1)
        #expect(reading["wakegate_tasks_discarded_total", "reason", "unregistered"] == 1)
        #expect(reading["wakegate_tasks_waiting", "kind", "processing"] == 1)
        #expect(reading["wakegate_tasks_in_flight", "kind", "appRefresh"] == 0)
        #expect(reading["wakegate_tasks_held", "reason", "worker"] == 1)
        #expect(reading["wakegate_tasks_unaccounted"] == 0)
        #expect((reading["wakegate_task_memory_bytes"] ?? 0) > 0)
        #expect(reading["wakegate_sessions_finished_total"] == 5)
        #expect(reading["wakegate_sessions_waiting"] == 2)
        #expect(reading["wakegate_sessions_in_flight"] == 3)
        #expect(reading["wakegate_sessions_unaccounted"] == 0)
        #expect(reading["wakegate_wakes_launched_total"] == 0, "of pushes alone")
        #expect(reading["wakegate_task_wakes_launched_total", "kind", "appRefresh"] == 1)
        #expect(reading["wakegate_task_wakes_launched_total", "kind", "urlSession"] == 1)
        let ended = reading.samples(of: "wakegate_task_wakes_ended_total")
        #expect(ended.count == TaskKind.allCases.count * TaskOutcome.allCases.count)
        #expect(ended.filter { $0.value > 0 }.map(\.labels) == [["kind": "appRefresh", "result": "success"]])
        #expect(reading["wakegate_task_wake_duration_seconds_count", "kind", "appRefresh"] == 1)
        #expect(reading["wakegate_task_wake_duration_seconds_count", "kind", "urlSession"] == 0)
    }
}

@Suite("Samples and limits of an engine", .timeLimit(.minutes(15)))
struct SamplesAndLimitsTests {
    @Test("Samples are taken once a second, and none for seconds in which the process slept")
    func samples() throws {
        let rig = DispatchRig()
        let room = RoomState(GatewayRecords(countingSince: 1), LimitCounts(), commitTimes: { CommitTimes() })
        let workspace = Workspace(engine: rig.engine, dispatcher: rig.dispatcher, offset: .ahead)
        let service = LiveService()
        let sampler = LiveSampler(service)
        let start = rig.rig.now
        for passed in [0, 1, 999, 1000, 1500, 2000, 9_300, 9_999, 10_300] as [Int64] {
            sampler.look(Instant(milliseconds: start + passed), workspace, room, loopCount: 1)
        }
        let series = try #require(service.samples(seconds: 1).flatMap { JSONValue($0) })
        let times = try #require(series["samples"]).elements.compactMap { $0.elements.first?.integer }
        #expect(times.map { $0 - start - 10_000 } == [0, 1000, 2000, 9_300, 10_300])
        #expect(sampler.nextAt == start + 11_300)
    }

    @Test("A limit that was reached is counted, also after its dispatcher is gone")
    func limits() {
        let (rig, limits) = (DispatchRig(), LimitCounts())
        #expect(limits.met(rig.dispatcher).isEmpty)
        limits.met(.devicesMax)
        limits.met(.devicesMax)
        #expect(limits.met(rig.dispatcher).map { "\($0.name) \($0.count)" } == ["devicesMax 2"])
        limits.met(.taskTopicPercentMax)
        #expect(limits.met(rig.dispatcher).first { $0.name == "taskTopicPercentMax" }?.count == 1)
        let full = DispatchRig(wakeBytesPerStreamMax: 1)
        full.subscribe(1)
        full.push(1)
        #expect(full.dispatcher.timesStreamWasFull == 1)
        limits.take(from: full.dispatcher)
        let met = limits.met(full.dispatcher).first { $0.name == "wakeBytesPerStreamMax" }
        #expect(met?.count == 2, "counts of the former and the present dispatcher")
        #expect(limits.all(rig.dispatcher).count > 8)
    }
}

@Suite("The samples that charts are made of")
struct SampleHistoryTests {
    private func sample(_ second: Int) -> LiveSample {
        var counters = ActivityCounters()
        counters.accepted = Int64(second) * 3
        return LiveSample(at: Int64(second) * 1000, counters, rejected: 0, Dispatcher.WorkerCounts())
    }

    /// Returns the times of a series in seconds, as written.
    private func seconds(_ history: SampleHistory, every: Int) throws -> [Int] {
        let json = try self.series(history, every: every)
        #expect(json["fields"]?.elements.compactMap(\.text) == LiveSample.fields)
        let accepted = try #require(LiveSample.fields.firstIndex(of: "accepted"))
        return try #require(json["samples"]).elements.map { sample in
            let row = sample.elements
            let second = try #require(row[0].integer) / 1000
            #expect(row[accepted].integer == second * 3)
            return Int(second)
        }
    }

    private func series(_ history: SampleHistory, every seconds: Int) throws -> JSONValue {
        var writer = JSONWriter()
        try #require(history[seconds: seconds]).write(to: &writer)
        return try #require(JSONValue(writer.buffer.view.array))
    }

    @Test("Each resolution keeps its last samples, oldest first, and never more than its limit")
    func spans() throws {
        var history = SampleHistory()
        for second in 0..<100_000 { history.append(self.sample(second)) }
        for (every, countMax) in SampleHistory.spans {
            let last = 99_999 / every * every
            let expected = (0..<countMax).map { last - (countMax - 1 - $0) * every }
            #expect(try self.seconds(history, every: every) == expected)
        }
        #expect(history[seconds: 7] == nil)
    }

    @Test("A young history has only the samples so far")
    func young() throws {
        var history = SampleHistory()
        #expect(try self.seconds(history, every: 1).isEmpty)
        for second in 0..<12 { history.append(self.sample(second)) }
        #expect(try self.seconds(history, every: 1) == Array(0..<12))
        #expect(try self.seconds(history, every: 10) == [0, 10])
    }

    @Test("A sample has the values of charts for tasks, by kind and by hold, in the order of the fields")
    func tasks() throws {
        var counters = ActivityCounters()
        counters.requests.waiting[.processing] = 3
        counters.requests.inFlight[.continued] = 4
        counters.requests.held[.power] = 2
        counters.sessions.waiting = 9
        counters.tasks.launched[.urlSession] = 5
        var history = SampleHistory()
        history.append(LiveSample(at: 1, counters, rejected: 0, Dispatcher.WorkerCounts()))
        let row = try #require(self.series(history, every: 1).value(at: ["samples", "0"])).elements.map(\.described)
        let shown = zip(LiveSample.fields, row).filter { $0.0.hasPrefix("tasks.") && $0.1 != "0" }
        #expect(
            shown.map { "\($0.0) \($0.1)" } == [
                "tasks.waiting.processing 3", "tasks.waiting.urlSession 9", "tasks.inFlight.continued 4",
                "tasks.launched.urlSession 5", "tasks.held.power 2",
            ]
        )
        #expect(row.count == LiveSample.fields.count && Set(LiveSample.fields).count == row.count)
    }

    @Test("Viewers are limited by readersMax, and a place is free again when one leaves")
    func readers() {
        let service = LiveService(readersMax: 2)
        #expect(!service.isWatched)
        #expect(service.readers.came() && service.readers.came())
        #expect(!service.readers.came())
        #expect(service.isWatched)
        service.readers.went()
        #expect(service.readers.came())
    }
}

extension GatewayEngineRig {
    /// - Parameter topics: the topics named in the configuration.
    fileprivate func metrics(_ request: Int = 900, named topics: [Int] = []) throws -> MetricsReading {
        try MetricsReading(self.ask(request) { $0.metrics(request, named: topics) }.text)
    }
}

/// Metrics as a scraper reads them from the text format.
struct MetricsReading {
    struct Sample {
        let name: String
        let labels: [String: String]
        let value: Double
    }

    struct Malformed: Error, CustomStringConvertible {
        let description: String
    }

    /// The names in the order of their help lines.
    private(set) var names: [String] = []
    private(set) var helps: [String: String] = [:]
    private(set) var kinds: [String: String] = [:]
    private(set) var samples: [Sample] = []

    init(_ text: String) throws {
        guard text.hasSuffix("\n") else { throw Malformed(description: "no newline at the end of \(text.suffix(80))") }
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 3).map(String.init)
            switch words[0] == "#" ? words[1] : "" {
            case "HELP":
                self.names.append(words[2])
                self.helps[words[2]] = words[3]
            case "TYPE": self.kinds[words[2]] = words[3]
            default: try self.samples.append(Self.sample(line))
            }
        }
    }

    /// The value of the only sample of this name with this label, or of the only sample.
    subscript(name: String, label: String? = nil, value: String = "") -> Double? {
        let found = self.samples.filter { $0.name == name && (label == nil || $0.labels[label ?? ""] == value) }
        return found.count == 1 ? found[0].value : nil
    }

    /// Returns the samples of a metric, including those of a histogram's parts.
    func samples(of metric: String) -> [Sample] {
        self.samples.filter { sample in
            sample.name == metric || ["_bucket", "_sum", "_count"].contains { sample.name == metric + $0 }
        }
    }

    private static func sample(_ line: Substring) throws -> Sample {
        let pattern = /([a-z_]+)(?:\{(.*)\})? (\S+)/
        guard let match = line.wholeMatch(of: pattern), let value = Double(match.3) else {
            throw Malformed(description: "no sample: \(line)")
        }
        var labels: [String: String] = [:]
        for pair in (match.2 ?? "").split(separator: ",") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            labels[String(parts[0])] = parts[1].trimmingCharacters(in: ["\""])
        }
        return Sample(name: String(match.1), labels: labels, value: value)
    }
}
