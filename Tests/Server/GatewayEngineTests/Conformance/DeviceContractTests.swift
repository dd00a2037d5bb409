import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: devices and access to them", .timeLimit(.minutes(15)))
struct DeviceContractTests {
    @Test("A token belongs to one topic, and may move to another after its removal", arguments: EngineKind.all)
    func registration(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.register(1, 1)
            $0.register(2, 1)
            $0.register(3, 1, topic: 1)
            $0.unregister(4, 2)
        }
        #expect(
            (1...4).map { contract.answer($0) } == [
                "201", "201", "409 DeviceTokenNotForTopic", "404 UnknownDevice",
            ]
        )
        #expect(try contract.counters().registered == 1)
        contract.ask { $0.push(5, 1) }
        contract.ask { $0.unregister(6, 1) }
        contract.ask { $0.push(7, 1) }
        #expect(contract.answer(6) == "204" && contract.word(7) == "Unregistered")
        #expect(contract.reply(7)?.timestamp == contract.wall)
        let counters = try contract.counters()
        #expect((counters.registered, counters.pending, counters.discarded[.unregistered]) == (0, 0, 1))
        contract.ask { $0.register(8, 1, topic: 1) }
        contract.ask { $0.push(9, 1, topic: 1) }
        #expect(contract.answer(8) == "201" && contract.word(9) == "scheduled")
    }

    @Test("A new registration of a removed token forgets the apns-ids of its pushes", arguments: EngineKind.all)
    func forgottenIdentifiers(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.register(1, 1) }
        contract.ask { $0.push(2, 1, clientID: 77) }
        contract.ask { $0.unregister(3, 1) }
        contract.ask { $0.push(4, 1, clientID: 77) }
        #expect(contract.word(4) == "Unregistered")
        if kind.keeps { try contract.restart() }
        contract.ask { $0.register(5, 1) }
        contract.ask { $0.push(6, 1, clientID: 77) }
        #expect(contract.word(6) == "scheduled")
        var counters = try contract.counters()
        #expect((counters.accepted, counters.pending, counters.discarded[.unregistered]) == (2, 1, 1))
        // Registering a known token again changes nothing.
        contract.ask { $0.register(7, 1) }
        contract.ask { $0.push(8, 1, clientID: 77) }
        counters = try contract.counters()
        #expect(contract.word(8) == "scheduled" && counters.accepted == 2)
        contract.ask { $0.unregister(9, 1) }
        contract.ask { $0.register(10, 1, topic: 1) }
        contract.ask { $0.push(11, 1, topic: 1, clientID: 77) }
        counters = try contract.counters()
        #expect((counters.accepted, counters.pending, counters.discarded[.unregistered]) == (3, 1, 2))
    }

    @Test("With closed registration an unregistered token is unknown", arguments: EngineKind.all)
    func closed(kind: EngineKind) throws {
        let contract = try EngineContract(kind) { $0.openRegistration = false }
        contract.ask {
            $0.push(1, 1)
            $0.register(2, 1)
            $0.push(3, 1)
        }
        #expect(contract.word(1) == "BadDeviceToken" && contract.word(3) == "scheduled")
    }

    @Test("Conditions hold launches, and their end releases them", arguments: EngineKind.all)
    func conditions(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.subscribe(1)
            $0.register(2, 1)
        }
        contract.ask { $0.conditions(3, 1) { $0.network = false } }
        guard case .conditions(let conditions) = contract.outcome(3) else {
            throw RigFailure("a report is answered \(contract.answer(3))")
        }
        #expect(!conditions.network && conditions.batteryLevel == 1, "fields that were not reported stay")
        contract.ask { $0.readConditions(30, 1) }
        guard case .conditions(conditions) = contract.outcome(30) else {
            throw RigFailure("conditions are read as \(contract.answer(30))")
        }
        contract.ask { $0.push(4, 1) }
        #expect(contract.reply(4)?.hold == "network" && contract.wakes.isEmpty)
        #expect(try contract.counters().held[.network] == 1)
        contract.ask { $0.conditions(5, 1) { $0.network = true } }
        #expect(contract.wakes.map(\.push) == [EngineRig.apnsID(4)])
        contract.ask { $0.conditions(6, 2) { $0.network = true } }
        #expect(contract.answer(6) == "404 UnknownDevice")
    }

    @Test("An operator can launch a held device, and end its wake", arguments: EngineKind.all)
    func simulated(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask {
            $0.register(1, 1)
            $0.conditions(2, 1) { $0.network = false }
            $0.push(3, 1)
            $0.simulateLaunch(4, 1)
            $0.simulateExpiration(5, 1)
            $0.simulateLaunch(6, 2)
        }
        #expect((4...6).map { contract.answer($0) } == ["409 NoWorker", "409 NoWakeInFlight", "404 UnknownDevice"])
        contract.ask { $0.subscribe(7) }
        #expect(contract.wakes.isEmpty)
        contract.ask {
            $0.simulateLaunch(8, 1)
            $0.simulateLaunch(9, 1)
        }
        #expect(contract.answer(8) == "202" && contract.answer(9) == "409 WakeInFlight")
        let wake = try contract.lastWake()
        #expect(wake.push == EngineRig.apnsID(3))
        contract.ask { $0.simulateExpiration(10, 1) }
        #expect(contract.answer(10) == "202" && contract.expired(7) == [wake.id])
        #expect(try contract.counters().results[.expired] == 1)
    }

    @Test("Devices and wakes of other topics do not exist for a caller", arguments: EngineKind.all)
    func scopes(kind: EngineKind) throws {
        let contract = try EngineContract(kind) { $0.permittedTasks = .all }
        contract.ask {
            $0.register(1, 1)
            $0.register(2, 2, topic: 1)
            $0.subscribe(3)
            $0.push(4, 1)
        }
        let (unknownPeer, wake) = (try Caller.ofTopics([1]), try contract.lastWake().id)
        contract.ask {
            $0.caller = unknownPeer
            $0.explain(10, 1)
            $0.devicePushes(11, 1)
            $0.conditions(12, 1) { $0.charging = true }
            $0.simulateLaunch(13, 1)
            $0.simulateExpiration(14, 1)
            $0.unregister(15, 1)
            $0.report(16, wake, .newData)
            $0.extend(17, wake)
            $0.drainStream(18, 3)
            $0.register(19, 1, topic: 1)
            $0.explain(20, 2)
            $0.topics(21)
        }
        #expect((10...15).map { contract.answer($0) } == Array(repeating: "404 UnknownDevice", count: 6))
        #expect(
            (16...20).map { contract.answer($0) } == [
                "404 UnknownWake", "404 UnknownWake", "404 UnknownStream", "409 DeviceTokenNotForTopic", "200",
            ]
        )
        contract.ask {
            $0.caller = unknownPeer
            $0.deviceEvents(40, 1)
            $0.submit(41, 1)
            $0.listTasks(42, 1)
            $0.cancel(43, 1, nil)
            $0.finish(44, 1, "s")
            $0.simulateLaunch(45, 1, of: "refresh")
            $0.simulateExpiration(46, 1, of: "refresh")
            $0.progress(47, wake, 1)
            $0.release(48, wake)
            $0.readConditions(49, 1)
        }
        #expect((40...46).map { contract.answer($0) } == Array(repeating: "404 UnknownDevice", count: 7))
        #expect((47...48).map { contract.answer($0) } == ["404 UnknownWake", "404 UnknownWake"])
        #expect(contract.answer(49) == "404 UnknownDevice")
        let topics = contract.text(21)
        #expect(!topics.contains(EngineRig.topicName(0)) && topics.contains(EngineRig.topicName(1)))
        #expect(try contract.counters().inFlight == 1, "nothing has happened to it")
        let owner = try Caller.ofTopics([0])
        contract.ask {
            $0.caller = owner
            $0.explain(30, 1)
            $0.extend(31, wake)
            $0.report(32, wake, .newData)
            $0.drainStream(33, 3)
            $0.devicePushes(34, 1)
            $0.conditions(35, 1) { $0.charging = true }
            $0.unregister(36, 1)
        }
        #expect((30...36).map { contract.answer($0) } == ["200", "200", "204", "204", "200", "200", "204"])
    }

    @Test("A caller of one topic sees nothing of a device from before it was moved there", arguments: EngineKind.all)
    func moved(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.push(1, 1) }
        contract.pass(seconds: 1)
        contract.ask { $0.unregister(2, 1) }
        contract.pass(seconds: 1)
        contract.ask { $0.register(3, 1, topic: 1) }
        contract.pass(seconds: 1)
        contract.ask { $0.conditions(4, 1) { $0.charging = true } }
        let whatIf = try WhatIf(JSONReader.read(#"{"policy":{}}"#))
        func past(_ request: Int, _ caller: Caller?) -> [String] {
            contract.ask {
                if let caller { $0.caller = caller }
                $0.deviceEvents(request, 1)
                $0.devicePushes(request + 1, 1)
                $0.explain(request + 2, 1)
                $0.trace(request + 3, 1)
                $0.whatIf(request + 4, topic: 1, whatIf)
            }
            return (request...request + 3).map { contract.text($0) }
        }
        let all = past(10, nil)
        #expect(all[0].contains("discard") && all[2].contains("discard") && all[3].contains("\"push\""))
        let ofTopic = past(20, try Caller.ofTopics([1]))
        for (answer, text) in ofTopic.enumerated() {
            #expect(contract.answer(20 + answer) == "200")
            #expect(!text.contains("discard") && !text.contains("\"push\"") && !text.contains("apns-id"))
        }
        #expect(ofTopic[0].contains("registered") && ofTopic[0].contains("conditions"))
        #expect(!contract.member(11, "pushes", "0", "apnsID").isEmpty)
        #expect(contract.member(21, "pushes", "0", "apnsID").isEmpty)
        #expect(contract.member(14, "pushes") == "1" && contract.member(24, "pushes") == "0")
    }
}
