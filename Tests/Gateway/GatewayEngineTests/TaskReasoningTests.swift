import Access
import Bytes
import DeviceEngine
import EngineRoom
import LaunchPolicy
import Testing
import Text
import WakeDispatch
import WakeGateTestKit

@Suite("Why a task waits, and what answers show of it", .timeLimit(.minutes(15)))
struct TaskReasoningTests {
    /// A desk with a registered device, on which every task is permitted.
    private func rig(_ parameters: [(TaskParameters.Name, Double)] = []) throws -> DeskRig {
        var configuration = EngineRig.open([(.launchInterval, 60), (.executionWindow, 20)])
        configuration.permittedTasks = .all
        for (name, value) in parameters { try configuration.policy.tasks.set(name, to: value) }
        let rig = DeskRig(configuration)
        rig.perform { $0.register(1, 1) }
        _ = rig.heard()
        return rig
    }

    /// The body of the one answer to what is asked.
    private func answer(_ rig: DeskRig, _ ask: (Requests) -> Void) throws -> JSONValue {
        _ = rig.heard()
        rig.perform { ask($0) }
        for case .answer(_, let outcome) in rig.heard() {
            var writer = JSONWriter()
            outcome.write(to: &writer)
            return try JSONReader.read(writer.buffer.view.string)
        }
        throw RigFailure("nothing was answered")
    }

    /// The member of a task in a device's list.
    private func member(
        _ rig: DeskRig,
        _ name: String,
        of state: String = "waiting",
        _ index: Int = 0
    ) throws -> String {
        let list = try self.answer(rig) { $0.listTasks(90, 1) }
        guard case .array(let tasks)? = list[state], tasks.indices.contains(index) else { return "" }
        guard case .string(let text)? = tasks[index][name] else { return tasks[index][name]?.described ?? "" }
        return text
    }

    @Test(
        "What holds a task is named with what ends the hold",
        arguments: [
            ("forceQuit", "the app was force-quit, and launches once appState is reported as background"),
            ("backgroundRefresh", "background refresh is denied, and launches once it is reported as available"),
            ("active", "the device is in use, and launches once appState is reported as background"),
            ("network", "the device has no network, which it needs"),
            ("power", "it requires external power and the device is not charging"),
            ("lowPower", "the device is in low power mode"), ("thermal", "the thermal state is serious"),
            ("battery", "the battery is at 1 %, below the critical"),
        ]
    )
    func holds(code: String, words: String) throws {
        let rig = try self.rig()
        rig.perform { requests in
            requests.submit(2, 1, "clean", .processing(code == "power" ? .externalPower : .network))
            requests.conditions(3, 1) { report in
                switch code {
                case "forceQuit": report.appState = .forceQuit
                case "backgroundRefresh": report.backgroundRefresh = .denied
                case "active": report.appState = .active
                case "network": report.network = false
                case "lowPower": report.lowPowerMode = true
                case "thermal": report.thermalState = .serious
                case "battery": report.batteryLevel = 0.01
                default: break
                }
            }
        }
        #expect(try self.member(rig, "held") == code)
        let why = try self.member(rig, "why")
        #expect(why.hasPrefix("The processing task is held because \(words)"), "\(why)")
        #expect(why.hasSuffix("."))
    }

    @Test("A device that nobody uses holds refreshes, and says since when")
    func usage() throws {
        let rig = try self.rig([(.usageWindow, 100)])
        rig.perform { requests in
            requests.conditions(2, 1) { $0.appState = .active }
            requests.conditions(3, 1) { $0.appState = .background }
            requests.submit(4, 1)
        }
        _ = rig.dispatcher.advance(to: rig.rig.engine.now + 100_000, devicesMax: 10)
        #expect(try self.member(rig, "held") == "usage")
        let why = try self.member(rig, "why")
        #expect(why.contains("for longer than the 100 s of usageWindow; it launches after the next use."), "\(why)")
    }

    @Test("What waits for its time says until when and why")
    func times() throws {
        let rig = try self.rig()
        let now = DeskRig.offset.wall(rig.rig.engine.now)
        rig.perform { $0.submit(2, 1, earliestBegin: now + 30_000) }
        #expect(try self.member(rig, "why").hasPrefix("The refresh waits for its earliest beginning at "))
        #expect(try self.member(rig, "eligibleAt") == "\(now + 30_000)")
        #expect(try self.member(rig, "earliestBegin") == "\(now + 30_000)")
        rig.perform {
            $0.subscribe(3, tasks: ["clean"])
            $0.push(4, 1)
            $0.submit(5, 1)
            $0.submit(6, 1, "clean", .processing([]))
            $0.simulateExpiration(7, 1, of: "clean")
            $0.submit(8, 1, "clean", .processing([]))
        }
        #expect(try self.member(rig, "why").contains("the last launch was at "))
        #expect(try self.member(rig, "why").contains("launches of priority 5 are "))
        let processing = try self.member(rig, "why", 1)
        #expect(processing.contains("processing tasks of a device are launched at least 3600 s apart (doubled 1 times"))
    }

    @Test("What waits for a lane or for a worker says for which")
    func slots() throws {
        let rig = try self.rig()
        rig.perform { $0.submit(2, 1, "clean", .processing([])) }
        #expect(try self.member(rig, "held") == "worker")
        #expect(
            try self.member(rig, "why")
                == "The processing task is due, but no stream of \(EngineRig.topicName(0)) that subscribed with "
                + "task=clean has a free slot for this device: start a worker that does, or give it more slots."
        )
        rig.perform {
            $0.subscribe(3, tasks: ["clean"])
            $0.submit(4, 1, "other", .processing([]))
        }
        #expect(try self.member(rig, "why", of: "running").hasPrefix("The processing task has been running since "))
        #expect(
            try self.member(rig, "deadline", of: "running") == "\(DeskRig.offset.wall(rig.rig.engine.now) + 600_000)"
        )
        rig.perform {
            $0.conditions(5, 1) { $0.appState = .active }
            $0.subscribe(6, tasks: ["export"])
            $0.submit(7, 1, "export", .continued(.queue), details: TaskDetails(title: "A"))
            $0.submit(8, 1, "export", .continued(.queue), details: TaskDetails(title: "B"))
        }
        let why = try self.member(rig, "why", 1)
        #expect(why.hasPrefix("The continued task waits until fewer than 1 continued tasks of the device are running"))
        #expect(why.hasSuffix("now those are export."), "\(why)")
    }

    @Test("Each kind shows what it was submitted with")
    func members() throws {
        let rig = try self.rig()
        rig.perform {
            $0.conditions(2, 1) { $0.appState = .active }
            $0.submit(3, 1, "export", .continued(.queue), details: TaskDetails(title: "A", resources: ["gpu"]))
            $0.submit(4, 1, "clean", .processing(.externalPower))
            $0.finish(5, 1, "uploads", 7)
        }
        let list = try self.answer(rig) { $0.listTasks(6, 1) }
        guard case .array(let waiting)? = list["waiting"], waiting.count == 3 else {
            throw RigFailure("the list is \(list)")
        }
        func names(_ index: Int) -> Set<String> { Set(waiting[index].members.map(\.name)) }
        let common: Set = ["kind", "submittedAt", "attempts", "eligibleAt", "held", "why"]
        #expect(names(0) == common.union(["identifier", "title", "resources"]))
        #expect(
            names(1)
                == common.union([
                    "identifier", "earliestBegin", "requiresNetworkConnectivity", "requiresExternalPower",
                ])
        )
        #expect(names(2) == common.union(["session", "count"]))
        #expect(waiting[1]["requiresExternalPower"] == .bool(true) && waiting[1]["earliestBegin"] == .null)
    }

    @Test("All devices are listed together, as far as a caller reaches them and the filters say")
    func allTasks() throws {
        let rig = try self.rig()
        rig.perform {
            $0.register(2, 2, topic: 1)
            $0.submit(3, 1, "a")
            $0.submit(4, 2, "b", .processing([]))
        }
        func names(_ question: TaskQuestion, _ caller: Caller = .gateway) throws -> [String] {
            _ = rig.heard()
            rig.perform {
                $0.caller = caller
                $0.allTasks(9, question)
            }
            rig.requests.writeNextLongList(rig.workspace())
            for case .answer(_, let outcome) in rig.heard() {
                var writer = JSONWriter()
                outcome.write(to: &writer)
                guard case .array(let tasks)? = try JSONReader.read(writer.buffer.view.string)["tasks"] else { break }
                return tasks.map { "\($0["identifier"]?.described ?? "") \($0["state"]?.described ?? "")" }.sorted()
            }
            throw RigFailure("nothing was answered")
        }
        let (one, other) = (#""a" "waiting""#, #""b" "waiting""#)
        #expect(try names(TaskQuestion()) == [one, other])
        #expect(try names(TaskQuestion(topic: EngineRig.topicName(1))) == [other])
        #expect(try names(TaskQuestion(kind: .appRefresh)) == [one])
        #expect(try names(TaskQuestion(state: .running)) == [])
        #expect(try names(TaskQuestion(topic: "never.seen")) == [])
        let scoped = try Caller.ofTopics([1])
        #expect(try names(TaskQuestion(), scoped) == [other])
        #expect(try names(TaskQuestion(topic: EngineRig.topicName(0)), scoped) == [])
    }
}
