import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: diagnoses, and lists of topics", .timeLimit(.minutes(15)))
struct DiagnosisContractTests {
    /// Returns the failed checks of a diagnosis, each with its remedy.
    private func failures(_ contract: EngineContract, _ request: Int) throws -> [String] {
        let answer = try JSONReader.read(contract.text(request))
        guard case .array(let checks)? = answer["checks"] else { throw RigFailure("the answer is \(answer)") }
        #expect(checks.count >= 8)
        return checks.filter { $0["ok"] == .bool(false) }.map { check in
            guard case .string(let name)? = check["check"] else { return "no name" }
            guard case .string(let remedy)? = check["remedy"] else { return name }
            return "\(name): \(remedy)"
        }
    }

    @Test("A diagnosis names everything that holds a push, each with its remedy", arguments: EngineKind.all)
    func ofPush(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        let (topic, token) = (EngineRig.topicName(0), EngineRig.token(1).hex)
        contract.ask { $0.register(1, 1) }
        contract.ask { requests in
            requests.conditions(2, 1) { report in
                report.network = false
                report.thermalState = .critical
            }
        }
        contract.ask { $0.diagnose(3, 1) }
        #expect(contract.answer(3) == "200" && contract.member(3, "verdict") == "held")
        #expect(contract.member(3, "kind") == "push" && contract.member(3, "task") == "null")
        #expect(contract.member(3, "topic") == topic && contract.member(3, "device") == token)
        let worker = "wakegate worker --topic \(topic)"
        #expect(
            try self.failures(contract, 3) == [
                "handler: \(worker) -- COMMAND", "slots: \(worker) --slots 4 -- COMMAND",
                "hold:network: wakegate device conditions \(token) network=true",
                "hold:thermal: wakegate device conditions \(token) thermalState=nominal",
            ]
        )
        contract.ask { $0.subscribe(4) }
        contract.ask { requests in
            requests.conditions(5, 1) { report in
                report.network = true
                report.thermalState = .nominal
            }
        }
        contract.ask { $0.diagnose(6, 1) }
        #expect(contract.member(6, "verdict") == "ready" && contract.member(6, "eligibleAt") == "null")
        #expect(try self.failures(contract, 6).isEmpty)
        contract.ask { $0.push(7, 1) }
        contract.ask { $0.diagnose(8, 1) }
        #expect(contract.member(8, "verdict") == "inFlight")
        let expire = "lane: wakegate device expire \(token)"
        #expect(try self.failures(contract, 8) == [expire, "interval"])
        let wake = try contract.lastWake()
        contract.ask { $0.report(9, wake.id, .newData) }
        contract.ask { $0.diagnose(10, 1) }
        #expect(contract.member(10, "verdict") == "waiting")
        #expect(contract.member(10, "eligibleAt") == "\(contract.wall + 60_000)")
        #expect(try self.failures(contract, 10) == ["interval"])
        contract.ask { $0.unregister(11, 1) }
        contract.ask {
            $0.diagnose(12, 1)
            $0.diagnose(13, 2)
        }
        #expect(contract.member(12, "verdict") == "unregistered" && contract.answer(13) == "404 UnknownDevice")
        #expect(contract.member(12, "checks", "0", "remedy") == "wakegate device register \(token) --topic \(topic)")
    }

    @Test("A list of topics shows the kinds of wakes that each stream accepts", arguments: EngineKind.all)
    func takes(kind: EngineKind) throws {
        let contract = try taskContract(kind)
        contract.ask { $0.subscribe(2, tasks: ["a.*", "b"], resources: ["gpu"], takesPushes: false) }
        contract.ask { $0.topics(3) }
        #expect(contract.member(3, "topics", "0", "streams", "0", "takes", "pushes") == "false")
        let takes = "\"takes\":{\"pushes\":false,\"tasks\":[\"a.*\",\"b\"],\"sessions\":[],\"resources\":[\"gpu\"],"
        #expect(contract.text(3).contains("\(takes)\"devices\":null}"), "\(contract.text(3))")
    }

    @Test("A list of topics shows the busiest streams of each topic, independent of other topics")
    func busiest() throws {
        let contract = try EngineContract(.all[0])
        contract.ask { requests in
            for stream in 1...101 { requests.subscribe(stream, slots: 1) }
            requests.subscribe(200, topic: 1)
        }
        contract.ask { requests in for device in 1...101 { requests.push(1000 + device, device) } }
        contract.ask { $0.topics(3) }
        #expect(contract.member(3, "topics", "0", "streams", "99", "busy") == "1")
        #expect(contract.member(3, "topics", "0", "streams", "100").isEmpty)
        #expect(contract.member(3, "topics", "1", "streams", "0", "busy") == "0")
    }

    @Test("A list of topics has a bounded number of streams and of bytes in total")
    func manyStreams() throws {
        let short = try EngineContract(.all[0])
        short.ask { requests in for stream in 0..<1200 { requests.subscribe(10_000 + stream, topic: stream % 20) } }
        short.ask { $0.topics(3) }
        for topic in ["0", "19"] {
            #expect(!short.member(3, "topics", topic, "streams", "49", "busy").isEmpty)
            #expect(short.member(3, "topics", topic, "streams", "50").isEmpty)
        }
        let long = try EngineContract(.all[0]) { $0.permittedTasks = .all }
        let patterns = (0..<64).map { "\($0)" + String(repeating: "a", count: 240) }
        long.ask { requests in for stream in 0..<400 { requests.subscribe(10_000 + stream, tasks: patterns) } }
        long.ask { requests in
            for stream in 0..<400 { requests.subscribe(20_000 + stream, topic: 1 + stream % 4, tasks: patterns) }
        }
        long.ask { $0.topics(3) }
        #expect((4_000_000..<4_300_000).contains(long.text(3).utf8.count), "\(long.text(3).utf8.count)")
    }

    @Test("A diagnosis of a task looks at its identifier, its kind and its times", arguments: EngineKind.all)
    func ofTask(kind: EngineKind) throws {
        let contract = try EngineContract(kind) {
            $0.permittedTasks = .none
            $0.permittedTasks[EngineRig.topicName(0)] = [IdentifierPattern("clean")]
        }
        let (topic, token) = (EngineRig.topicName(0), EngineRig.token(1).hex)
        contract.ask { $0.register(1, 1) }
        contract.ask {
            $0.diagnose(2, 1, task: "other")
            $0.diagnose(3, 1, task: "clean")
        }
        #expect(contract.member(2, "verdict") == "held" && contract.member(2, "kind") == "appRefresh")
        let worker = "wakegate worker --topic \(topic) --task"
        #expect(
            try self.failures(contract, 2) == [
                "permitted: wakegate reload", "handler: \(worker) other -- COMMAND",
                "slots: \(worker) other --slots 4 -- COMMAND",
            ]
        )
        #expect(
            try self.failures(contract, 3) == [
                "handler: \(worker) clean -- COMMAND", "slots: \(worker) clean --slots 4 -- COMMAND",
            ]
        )
        contract.ask { $0.subscribe(4, tasks: ["clean"]) }
        contract.ask { $0.submit(5, 1, "clean", .processing(.externalPower), earliestBegin: contract.wall + 7_200_000) }
        contract.ask { $0.diagnose(6, 1, task: "clean") }
        #expect(contract.member(6, "verdict") == "held" && contract.member(6, "kind") == "processing")
        let launch = "earliestBegin: wakegate task launch \(token) clean"
        #expect(
            try self.failures(contract, 6) == [
                "hold:power: wakegate device conditions \(token) charging=true", launch,
            ]
        )
        contract.ask { $0.conditions(7, 1) { $0.charging = true } }
        contract.ask { $0.diagnose(8, 1, task: "clean") }
        #expect(contract.member(8, "verdict") == "waiting")
        #expect(contract.member(8, "eligibleAt") == "\(contract.wall + 7_200_000)")
        #expect(try self.failures(contract, 8) == [launch])
        contract.pass(seconds: 7200)
        contract.ask { $0.diagnose(9, 1, task: "clean") }
        #expect(contract.member(9, "verdict") == "inFlight")
        #expect(try self.failures(contract, 9).first == "lane: wakegate task expire \(token) clean")
    }
}

@Suite("Diagnoses with streams of another gateway", .timeLimit(.minutes(15)))
struct SharedDiagnosisTests {
    /// Returns two gateways; the first is asked about device 1.
    private func rig() -> GatewaysRig {
        var configuration = EngineRig.open(EngineContract.policy)
        configuration.permittedTasks = .all
        let rig = GatewaysRig(count: 2, configuration)
        rig.ask(0) { $0.register(1, 1) }
        return rig
    }

    /// Returns the verdict on a task or a push, with the details of its handler and its slots.
    private func diagnosis(_ rig: GatewaysRig, _ request: Int, task: String? = nil) throws -> [String] {
        rig.ask(0) { $0.diagnose(request, 1, task: task) }
        let answer = try JSONReader.read(rig[0].text(request))
        guard case .string(let verdict)? = answer["verdict"], case .array(let checks)? = answer["checks"] else {
            throw RigFailure("the answer is \(answer)")
        }
        return [verdict]
            + checks.compactMap { check in
                guard let name = check["check"], [.string("handler"), .string("slots")].contains(name),
                    case .string(let detail)? = check["detail"]
                else { return nil }
                return detail
            }
    }

    @Test("A launch without an accepting stream is not ready, although another gateway has free streams")
    func untaken() throws {
        let rig = self.rig()
        rig.ask(1) { $0.subscribe(2, slots: 1, tasks: ["a.*"], resources: ["gpu"], takesPushes: false) }
        rig.pass(seconds: 2)
        #expect(try self.diagnosis(rig, 3, task: "a.b")[0] == "ready")
        let other = try self.diagnosis(rig, 4, task: "b")
        #expect(other[0] == "held" && other[1].hasSuffix(" and none takes b of this device."))
        #expect(try self.diagnosis(rig, 5)[0] == "held")
        rig.ask(0) { requests in
            requests.submit(6, 1, "b")
            requests.push(7, 1)
        }
        rig.ask(0) { $0.explain(8, 1) }
        #expect(rig[0].text(8).contains("takes task=b of this device: start a worker that subscribes with it"))
        #expect(rig[0].text(8).contains("takes no pushes of this device: start a worker that does"))
        rig.ask(1) { $0.subscribe(9) }
        rig.pass(seconds: 2)
        #expect(rig[1].wakes.map(\.stream) == [9], "the push")
        rig.ask(0) { $0.report(10, rig[1].wakes[0].id, .newData) }
        rig.ask(0) { $0.submit(11, 1, "a.b", .processing([])) }
        rig.pass(seconds: 2)
        let busy = try self.diagnosis(rig, 12, task: "a.c")
        #expect(busy[1].hasSuffix(", and one takes a.c of this device."))
        #expect(busy[2].hasPrefix("Every stream that takes"))
    }

    @Test("A gateway does not know the devices of another gateway's streams, and says so")
    func unknown() throws {
        let rig = self.rig()
        rig.ask(1) { $0.subscribe(2, slots: 1, naming: [2]) }
        rig.pass(seconds: 2)
        let push = try self.diagnosis(rig, 3)
        #expect(push[0] == "held")
        #expect(push[1].contains("it is not known here whether one of another gateway takes pushes of this device"))
        #expect(push[2].hasPrefix("This gateway knows of no free stream that takes it. It launches at once if"))
        #expect(try self.diagnosis(rig, 4, task: "a")[1].contains(" none takes a "), "it accepts only pushes")
        rig.ask(0) { $0.explain(5, 1) }
        #expect(rig[0].text(5).contains("it launches at once if one of another gateway does"))
        rig.ask(0) { $0.subscribe(6) }
        #expect(try self.diagnosis(rig, 7)[0] == "ready")
    }
}
