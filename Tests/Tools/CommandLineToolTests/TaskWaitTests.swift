import CommandLineTool
import Testing
import Wire

@Suite("Waiting for the end of a task", .timeLimit(.minutes(15)))
struct TaskWaitTests {
    private static let events: [(word: String, event: String, detail: String)] = [
        ("submit", "submit", "scheduled"), ("launch", "launch", "attempt 1"), ("lost", "result", "lost"),
        ("success", "result", "success"), ("failure", "result", "failure"), ("expired", "result", "expired"),
        ("cancelled", "result", "cancelled"), ("interrupted", "result", "interrupted"),
        ("dropped", "discard", "cancelled"), ("forceQuit", "discard", "forceQuit"), ("replaced", "discard", "replaced"),
    ]

    /// Events in the order in which they happened, each a second after the one before, the first at 1000.
    ///
    /// - Parameter clockStep: by how much the clock was set before the last of them.
    private func recent(
        _ words: String,
        of task: String = "a",
        kind: String = "continued",
        clockStep: Int = 0
    ) throws -> [JSONValue] {
        let all = words.split(separator: " ")
        let written = try all.enumerated().map { index, word in
            let event = try #require(Self.events.first { $0.word == word })
            let moment = 1000 + index * 1000 + (index == all.count - 1 ? clockStep : 0)
            return #"{"at":\#(moment),"event":"\#(event.event)","detail":"\#(event.detail)","#
                + #""task":"\#(task)","kind":"\#(kind)"}"#
        }
        return try JSONReader.read("[\(written.reversed().joined(separator: ","))]").elements
    }

    private func device(
        _ state: String?,
        submittedAt: Int = 1000,
        recent: [JSONValue] = [],
        registeredAt: Int = 500
    ) throws -> JSONValue {
        let task = #"{"identifier":"a","kind":"continued","submittedAt":\#(submittedAt),"wake":"w"}"#
        let lists = ["running", "waiting"].map { #""\#($0)":[\#($0 == state ? task : "")]"# }.joined(separator: ",")
        let device = try JSONReader.read(#"{"registeredAt":\#(registeredAt),"tasks":{\#(lists)}}"#)
        return .object(device.members + [JSONMember(name: "recent", value: .array(recent))])
    }

    @Test(
        "A task that was never seen has the outcome of the last submission",
        arguments: [
            ("submit launch success", .success), ("submit launch failure", .failure),
            ("submit launch expired", .expired), ("submit launch cancelled", .cancelled),
            ("submit launch interrupted", .interrupted), ("submit dropped", .cancelled),
            ("submit forceQuit", .dropped("forceQuit")), ("submit launch lost launch success", .success),
            ("submit launch success submit launch failure", .failure), ("submit launch", nil),
            ("submit launch lost", nil), ("submit launch success submit", nil), ("", nil),
        ] as [(String, TaskEnding?)]
    )
    func unseen(events: String, ending: TaskEnding?) throws {
        var wait = TaskWait("a")
        let state = wait.take(try self.device(nil, recent: try self.recent(events)))
        #expect(state == (ending.map { .ended($0) } ?? .gone))
    }

    @Test("A task is followed from waiting to running to its end, over a loss")
    func followed() throws {
        var wait = TaskWait("a")
        #expect(wait.take(try self.device("waiting")).isWaiting == true)
        for state in ["running", "waiting", "running"] { _ = wait.take(try self.device(state)) }
        let end = wait.take(try self.device(nil, recent: try self.recent("submit launch lost launch expired")))
        #expect(end == .ended(.expired))
    }

    @Test("The end of a later request with the same identifier is not mistaken for the earlier one's")
    func later() throws {
        var replaced = TaskWait("a")
        _ = replaced.take(try self.device("waiting"))
        let events = try self.recent("submit submit launch success")
        #expect(replaced.take(try self.device(nil, recent: events)) == .ended(.dropped("replaced")))
        // A running task continues when another one is submitted, and so does the wait for it.
        var running = TaskWait("a")
        _ = running.take(try self.device("running"))
        let both = try self.recent("submit launch submit failure launch success")
        #expect(running.take(try self.device("waiting", submittedAt: 3000, recent: both)) == .ended(.failure))
        // The newer one of the two is the submitted one.
        var newer = TaskWait("a")
        let earlier = try self.recent("submit launch")
        let submitted = newer.take(try self.device("running", submittedAt: 5000, recent: earlier))
        #expect(submitted.running?.key.submittedAt == 5000)
    }

    @Test("A restarted gateway may report the time of a submission with a difference of milliseconds")
    func clocks() throws {
        for shift in [-3, 3] {
            var wait = TaskWait("a")
            _ = wait.take(try self.device("running", submittedAt: 1000))
            #expect(wait.take(try self.device("running", submittedAt: 1000 + shift)).running != nil)
            let events = try self.recent("submit launch lost launch success")
            #expect(wait.take(try self.device(nil, recent: events)) == .ended(.success))
        }
    }

    @Test("A task is not lost, nor mistaken for an earlier one, when the gateway's clock is set", arguments: [-1, 1])
    func clockSet(sign: Int) throws {
        let step = sign * 3_600_000
        var wait = TaskWait("a")
        _ = wait.take(try self.device("running", submittedAt: 4000))
        for _ in 0..<2 {
            let moved = try self.device("running", submittedAt: 4000 + step, registeredAt: 500 + step)
            #expect(wait.take(moved).running != nil)
        }
        let events = try self.recent("submit launch failure submit launch success", clockStep: step)
        #expect(wait.take(try self.device(nil, recent: events, registeredAt: 500 + step)) == .ended(.success))
        // When a device is removed and registered again, its running task continues.
        var kept = TaskWait("a")
        _ = kept.take(try self.device("running"))
        #expect(kept.take(try self.device("running", registeredAt: 900_000)).running != nil)
    }

    @Test("If its submission is no longer among the events, its last observed state counts")
    func forgotten() throws {
        var wait = TaskWait("a")
        _ = wait.take(try self.device("running", submittedAt: 500))
        #expect(
            wait.take(try self.device(nil, submittedAt: 500, recent: try self.recent("success"))) == .ended(.success)
        )
        var waiting = TaskWait("a")
        _ = waiting.take(try self.device("waiting", submittedAt: 500))
        #expect(waiting.take(try self.device(nil, recent: [])) == .gone)
    }

    @Test("Other tasks, and other kinds with the same identifier, are ignored")
    func others() throws {
        var wait = TaskWait("a")
        let others =
            try self.recent("submit launch success", of: "b")
            + self.recent("submit launch success", kind: "processing")
        #expect(wait.take(try self.device(nil, recent: others)) == .gone)
    }

    @Test("Each end has its own exit status, and only success is 0")
    func exitStatus() {
        let endings: [TaskEnding] = [.success, .failure, .expired, .cancelled, .interrupted, .dropped("forceQuit")]
        #expect(endings.map(\.exitStatus) == [0, 3, 4, 5, 6, 7])
        #expect(endings.map(\.name) == ["success", "failure", "expired", "cancelled", "interrupted", "forceQuit"])
        let ofProgram = [CommandFailure.Status.failed, .badUsage, .refusedCredential, .badConfiguration].map(\.rawValue)
        #expect(Set(ofProgram).isDisjoint(with: endings.map(\.exitStatus)))
        #expect(TaskEnding.abandonedStatus == 130)
    }
}

extension TaskWait.State {
    fileprivate var isWaiting: Bool { if case .waiting = self { true } else { false } }

    /// The status of a request that runs; nil for any other.
    fileprivate var running: TaskStatus? { if case .running(let status) = self { status } else { nil } }
}
