import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Why a task waits, and how answers show it", .timeLimit(.minutes(15)))
struct TaskReasoningTests {
    /// Returns an engine without a store, with a registered device on which every task is permitted.
    private func contract(_ parameters: [(PolicyParameter, Double)] = []) throws -> EngineContract {
        let contract = try taskContract(.all[0], parameters)
        contract.setWallClockAhead()
        return contract
    }

    /// Returns a member of a task in a device's list.
    private func member(
        _ contract: EngineContract,
        _ name: String,
        of state: String = "waiting",
        _ index: Int = 0
    ) -> String {
        contract.member(contract.question { $0.listTasks($1, 1) }, state, "\(index)", name)
    }

    /// Returns the list of all devices' tasks.
    private func listed(
        _ contract: EngineContract,
        _ question: TaskQuestion,
        _ caller: Caller = .gateway
    ) throws -> [JSONValue] {
        let request = contract.question { requests, number in
            requests.caller = caller
            requests.allTasks(number, question)
        }
        return try #require(JSONReader.read(contract.text(request))["tasks"]).elements
    }

    @Test(
        "A task's hold is named with its end",
        arguments: [
            ("forceQuit", "the app was force-quit, and launches once appState is reported as background"),
            ("backgroundRefresh", "background refresh is denied, and launches once it is reported as available"),
            ("active", "the device is in use, and launches once appState is reported as background"),
            ("network", "the device has no network, which it needs"),
            ("power", "it requires external power and the device is not charging"),
            ("lowPower", "the device is in low power mode"), ("thermal", "the thermal state is serious"),
            ("memory", "the memory pressure is critical, and launches once the device reports that it is normal"),
            ("battery", "the battery is at 1 %, below the critical"),
        ]
    )
    func holds(code: String, words: String) throws {
        let contract = try self.contract()
        contract.ask { requests in
            requests.submit(2, 1, "clean", .processing(code == "power" ? .externalPower : .network))
            requests.conditions(3, 1) { report in
                switch code {
                case "forceQuit": report.appState = .forceQuit
                case "backgroundRefresh": report.backgroundRefresh = .denied
                case "active": report.appState = .active
                case "network": report.network = false
                case "lowPower": report.lowPowerMode = true
                case "thermal": report.thermalState = .serious
                case "memory": report.memoryPressure = .critical
                case "battery": report.batteryLevel = 0.01
                default: break
                }
            }
        }
        #expect(self.member(contract, "held") == code)
        let why = self.member(contract, "why")
        #expect(why.hasPrefix("The processing task is held because \(words)"), "\(why)")
        #expect(why.hasSuffix("."))
    }

    @Test("Every hold of a task is named, with its earliest beginning and the worker that it lacks")
    func severalHolds() throws {
        let contract = try self.contract()
        let begin = contract.wall + 7_200_000
        contract.ask { requests in
            requests.submit(2, 1, "clean", .processing([.network, .externalPower]), earliestBegin: begin)
            requests.conditions(3, 1) { $0.network = false }
        }
        let why = self.member(contract, "why")
        let start =
            "The processing task is held for 2 reasons, and launches once all of them have ended: the device has no "
            + "network, which it needs, until it reports one; it requires external power and the device is not "
            + "charging, until charging is reported. Besides, it waits for its earliest beginning at "
        #expect(why.hasPrefix(start), "\(why)")
        let end =
            ". Besides, no stream of \(EngineRig.topicName(0)) takes task=clean of this device: start a worker that "
            + "subscribes with it."
        #expect(why.hasSuffix(end), "\(why)")
        contract.ask { requests in
            requests.subscribe(4, tasks: ["clean"])
            requests.conditions(5, 1) { report in
                report.network = true
                report.charging = true
            }
        }
        #expect(self.member(contract, "why").hasPrefix("The processing task waits for its earliest beginning at "))
        #expect(!self.member(contract, "why").contains("Besides"))
    }

    @Test("An unused device holds refreshes, and the reason says since when")
    func usage() throws {
        let contract = try self.contract([(.usageWindow, 100)])
        contract.ask { requests in
            requests.conditions(2, 1) { $0.appState = .active }
            requests.conditions(3, 1) { $0.appState = .background }
            requests.submit(4, 1)
        }
        contract.pass(seconds: 100)
        #expect(self.member(contract, "held") == "usage")
        let why = self.member(contract, "why")
        #expect(why.contains("than the 100 s of usageWindow, and launches once the device is used again."), "\(why)")
    }

    @Test("A task that waits for a time has the time and the reason")
    func times() throws {
        let contract = try self.contract()
        let now = contract.wall
        contract.ask { $0.submit(2, 1, earliestBegin: now + 30_000) }
        #expect(self.member(contract, "why").hasPrefix("The refresh waits for its earliest beginning at "))
        #expect(self.member(contract, "eligibleAt") == "\(now + 30_000)")
        #expect(self.member(contract, "earliestBegin") == "\(now + 30_000)")
        contract.ask {
            $0.subscribe(3, tasks: ["clean"])
            $0.push(4, 1)
            $0.submit(5, 1)
            $0.submit(6, 1, "clean", .processing([]))
            $0.simulateExpiration(7, 1, of: "clean")
            $0.submit(8, 1, "clean", .processing([]))
        }
        #expect(self.member(contract, "why").contains("the last launch was at "))
        #expect(self.member(contract, "why").contains("launches of priority 5 are "))
        let processing = self.member(contract, "why", 1)
        #expect(processing.contains("processing tasks of a device are launched at least 3600 s apart (doubled once "))
    }

    @Test(
        "The number of doublings is in words for one, and in digits for more",
        arguments: [(1, "doubled once "), (2, "doubled 2 times "), (20, "doubled 20 times ")] as [(UInt8, String)]
    )
    func doublings(penalty: UInt8, words: String) {
        #expect(Reasoning.doublings(penalty).hasPrefix(words + "because of expired wakes, "))
    }

    @Test("A task that waits for a lane or a worker names it")
    func slots() throws {
        let contract = try self.contract()
        contract.ask {
            $0.submit(2, 1, "clean", .processing([]))
            $0.subscribe(3, tasks: ["clean"])
            $0.submit(4, 1, "other", .processing([]))
        }
        #expect(self.member(contract, "why", of: "running").hasPrefix("The processing task has been running since "))
        #expect(self.member(contract, "deadline", of: "running") == "\(contract.wall + 600_000)")
        contract.ask {
            $0.conditions(5, 1) { $0.appState = .active }
            $0.subscribe(6, tasks: ["export"])
            $0.submit(7, 1, "export", .continued(.queue), details: TaskDetails(title: "A"))
            $0.submit(8, 1, "export", .continued(.queue), details: TaskDetails(title: "B"))
        }
        let why = self.member(contract, "why", 1)
        #expect(why.hasPrefix("The continued task waits until fewer than 1 continued tasks of the device are running"))
        #expect(why.hasSuffix("now those are export."), "\(why)")
    }

    @Test(
        "A task says whether no worker accepts it, or all that do are busy",
        arguments: [
            Wait(tasks: "a.*", offers: [], name: "a.b", needs: [], isTaken: true),
            Wait(tasks: "a.*", offers: [], name: "a", needs: [], isTaken: false),
            Wait(tasks: "a", offers: ["gpu"], name: "a", needs: ["gpu"], isTaken: true),
            Wait(tasks: "a", offers: [], name: "a", needs: ["gpu"], isTaken: false),
            Wait(tasks: "a", offers: ["disk", "gpu", "npu"], name: "a", needs: ["npu", "gpu"], isTaken: true),
            Wait(tasks: "a", offers: ["disk", "gpu"], name: "a", needs: ["npu", "gpu"], isTaken: false),
        ]
    )
    func takers(wait: Wait) throws {
        let contract = try self.contract()
        contract.ask {
            $0.register(2, 2)
            $0.subscribe(3, slots: 1, tasks: [wait.tasks, "busy"], resources: wait.offers, takesPushes: false)
            $0.submit(4, 2, "busy", .processing([]))
            $0.conditions(5, 1) { $0.appState = .active }
            $0.submit(6, 1, wait.name, .continued(.queue), details: TaskDetails(resources: wait.needs))
        }
        let what = (["task=\(wait.name)"] + wait.needs.map { "resource=\($0)" }).joined(separator: " and ")
        let start = "The continued task is due, but no stream of \(EngineRig.topicName(0)) "
        let why =
            wait.isTaken
            ? "\(start)that takes \(what) of this device has a free slot: it launches once one has; start another "
                + "worker, or give one more slots."
            : "\(start)takes \(what) of this device: start a worker that subscribes with it."
        #expect(self.member(contract, "why") == why)
        #expect(self.member(contract, "held") == "worker")
        #expect(try self.listed(contract, TaskQuestion(state: .waiting)).map { $0["why"] } == [.string(why)])
    }

    struct Wait: Sendable {
        /// The identifiers that the only stream accepts.
        let tasks: String
        let offers: [String]
        let name: String
        let needs: [String]
        let isTaken: Bool
    }

    @Test("Each kind shows its submitted values")
    func members() throws {
        let contract = try self.contract()
        contract.ask {
            $0.conditions(2, 1) { $0.appState = .active }
            $0.submit(3, 1, "export", .continued(.queue), details: TaskDetails(title: "A", resources: ["gpu"]))
            $0.submit(4, 1, "clean", .processing(.externalPower))
            $0.finish(5, 1, "uploads", 7)
        }
        contract.ask { $0.listTasks(6, 1) }
        let waiting = try #require(JSONReader.read(contract.text(6))["waiting"]).elements
        try #require(waiting.count == 3)
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
        let contract = try self.contract()
        contract.ask {
            $0.register(2, 2, topic: 1)
            $0.submit(3, 1, "a")
            $0.submit(4, 2, "b", .processing([]))
        }
        func names(_ question: TaskQuestion, _ caller: Caller = .gateway) throws -> [String] {
            try self.listed(contract, question, caller).map {
                "\($0["identifier"]?.described ?? "") \($0["state"]?.described ?? "")"
            }.sorted()
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
        // An unknown topic matches no device, not all.
        #expect(try names(TaskQuestion(topic: "never.seen"), scoped) == [])
        let unknownPeer = try Caller.ofTopics([7])
        #expect(try names(TaskQuestion(), unknownPeer) == [])
        #expect(try names(TaskQuestion(topic: EngineRig.topicName(7)), unknownPeer) == [])
        #expect(try names(TaskQuestion(), Caller.ofTopics([1, 7])) == [other])
    }

    @Test("An operator of some topics gets tasks in the same order as an operator of all")
    func order() throws {
        let contract = try self.contract()
        contract.ask {
            for device in 2...7 { $0.register(device, device, topic: device % 2) }
            for device in 2...7 { $0.submit(10 + device, device, "a\(device)") }
        }
        func names(_ caller: Caller) throws -> [String] {
            try self.listed(contract, TaskQuestion(), caller).map { $0["identifier"]?.described ?? "" }
        }
        #expect(try names(.gateway) == (2...7).map { "\"a\($0)\"" })
        #expect(try names(Caller.ofTopics([0, 1])) == names(.gateway))
    }
}
