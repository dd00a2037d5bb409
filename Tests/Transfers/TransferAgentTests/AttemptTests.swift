import Dispatch
import HTTPClient
import Synchronization
import Testing
import TransferAgent
import Wire

@Suite("Attempts with the files of an agent", .timeLimit(.minutes(15)))
struct AttemptTests {
    private let rig: AgentRig

    init() throws {
        self.rig = try AgentRig()
        try self.rig.start()
        #expect(self.rig.put() == 201)
    }

    /// Runs an attempt to its end.
    ///
    /// - Returns: its reports, and the number of bytes with which it began.
    private func run(_ plan: AttemptPlan) async throws -> (news: [AttemptNews], first: Int64) {
        let files = try #require(self.rig.stateFiles)
        let network = try HTTPThread.shared()
        let worker = try FileWorker("test")
        defer { worker.stop() }
        let (reports, report) = AsyncStream<AttemptNews>.makeStream()
        let attempt = TransferAttempt(plan, files: files, worker: worker, network: network) { news in
            report.yield(news)
            if case .failed = news { report.finish() }
            if case .succeeded = news { report.finish() }
        }
        network.submit { attempt.begin(on: $0) }
        let news = await reports.reduce(into: []) { $0.append($1) }
        return (news, attempt.gauge.first.load(ordering: .relaxed))
    }

    @Test("After a reboot, an attempt continues only the bytes that were synced, which later attempts then trust")
    func reboot() async throws {
        // Nothing listens at this port.
        _ = try self.rig.download("http://127.0.0.1:1/a")
        let attempt = self.rig.world.attempts[0]
        let name = attempt.plan.freshFile
        let writing = try self.rig.begin(attempt)
        // A closure that throws `SystemError` crashes the compiler here (Swift 6.3.1).
        #expect("abcdef".withByteView { (try? writing.write($0)) != nil })
        attempt.report(.synced(file: name, bytes: 4))
        self.rig.turn()
        try self.rig.start()
        #expect(try await self.run(try #require(self.rig.world.attempts.first).plan).first == 6)
        try self.rig.reboot(after: 1)
        let next = try #require(self.rig.world.attempts.first)
        let (news, first) = try await self.run(next.plan)
        #expect(first == 4 && news.count == 2)
        guard case .synced(name, bytes: 4)? = news.first else {
            Issue.record("\(news)")
            return
        }
        next.report(.synced(file: name, bytes: 4))
        self.rig.turn()
        try self.rig.start()
        #expect(self.rig.world.attempts.first?.plan.part?.boot == self.rig.boot)
    }

    @Test("The file of an upload is named in the reason why it cannot be sent", arguments: ["missing", ""])
    func unreadable(name: String) async throws {
        let path = "\(self.rig.folder)/\(name)"
        var submission = AgentRig.download("http://127.0.0.1:1/a")
        submission.kind = .upload
        submission.spec.file = path
        #expect(self.rig.ask(.submit("s", submission)).status == 201)
        let (news, _) = try await self.run(try #require(self.rig.world.attempts.first).plan)
        guard case .failed(.fileUnreadable(let words), hasProgressed: false)? = news.first, news.count == 1 else {
            Issue.record("\(news)")
            return
        }
        #expect(words.hasPrefix(path))
    }

    @Test("Files of ended uploads that do not respond occupy a limited number of threads, and none when they respond")
    func unresponsive() async throws {
        let files = try #require(self.rig.stateFiles)
        let path = "\(self.rig.folder)/missing"
        let source = try UploadSource(path, in: files)
        let gate = DispatchSemaphore(value: 0)
        source.perform { _ in gate.wait() }
        source.close()
        #expect(files.closingSources.load(ordering: .relaxed) == 1)
        let others = UploadSource.closingMax - 1
        files.closingSources.add(others, ordering: .relaxed)
        var submission = AgentRig.download("http://127.0.0.1:1/a")
        submission.kind = .upload
        submission.spec.file = path
        #expect(self.rig.ask(.submit("s", submission)).status == 201)
        let plan = try #require(self.rig.world.attempts.first).plan
        guard case .failed(.fileUnresponsive(_), hasProgressed: false)? = try await self.run(plan).news.first else {
            Issue.record("an attempt has begun with another thread")
            return
        }
        gate.signal()
        while files.closingSources.load(ordering: .relaxed) > others { await Task.yield() }
        guard case .failed(.fileUnreadable(_), hasProgressed: false)? = try await self.run(plan).news.first else {
            Issue.record("no attempt begins after a thread has ended")
            return
        }
    }
}
