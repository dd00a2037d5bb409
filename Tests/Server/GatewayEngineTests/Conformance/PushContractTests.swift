import Engine
import Gateway
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("The contract of an engine: pushes", .timeLimit(.minutes(15)))
struct PushContractTests {
    @Test("Every push is answered once, under its own id", arguments: EngineKind.all)
    func once(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        let (past, future) = (contract.wall / 1000 - 1, contract.wall / 1000 + 60)
        contract.ask { $0.subscribe(1, slots: 2) }
        contract.step { requests in
            for number in 100..<140 {
                requests.push(number, number % 8, number.isMultiple(of: 3) ? .immediate : .passive)
            }
        }
        contract.step {
            $0.push(140, 1, topic: 1)
            $0.push(141, 2, expiration: past)
            $0.push(142, 3, expiration: future)
            $0.push(143, 4, expiration: 0)
            $0.push(144, 5, wakes: false)
            $0.push(145, 90, isDryRun: true)
            $0.rejected(.badPriority)
        }
        contract.settle()
        for number in 100..<146 {
            #expect(contract.answerCount(number) == 1, "push \(number)")
            #expect(contract.reply(number)?.apnsID == EngineRig.apnsID(UInt64(number)))
        }
        #expect(contract.word(140) == "DeviceTokenNotForTopic")
        #expect(contract.word(141) == "discarded")
        #expect(contract.word(144) == "no-wake")
        let counters = try contract.counters()
        #expect(counters.accepted == 43, "not the refused push, the dry run or the push without a wake")
        #expect(counters.registered == 8, "a dry run registers no device")
        #expect(counters.noWake == 1)
        let rejected = try contract.statistics().rejected
        #expect(rejected[APNSReason.badPriority.index] == 1, "refused by a loop")
        #expect(rejected[APNSReason.deviceTokenNotForTopic.index] == 1 && rejected.reduce(0, +) == 2)
        #expect(try contract.statistics(topic: 0).rejected[APNSReason.badPriority.index] == 1)
        contract.pass(seconds: 600)
        for number in 100..<146 { #expect(contract.answerCount(number) == 1, "push \(number), later") }
    }

    @Test("A push is answered and its wake sent only after both are durable", arguments: EngineKind.onCommand)
    func afterCommit(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1) }
        contract.step { $0.push(2, 1) }
        contract.step { $0.push(3, 2) }
        #expect(contract.answered == [1] && contract.wakes.isEmpty)
        contract.commit()
        #expect(contract.answered == [1, 2] && contract.wakes.count == 1)
        contract.step()
        #expect(contract.answerCount(3) == 0, "it arrived after the commit began")
        contract.commit()
        #expect(contract.answered == [1, 2, 3] && contract.wakes.count == 2)
        let wake = try contract.lastWake()
        contract.step { $0.report(4, wake.id, .newData) }
        #expect(contract.answerCount(4) == 0 && contract.released(1).isEmpty)
        contract.commit()
        #expect(contract.answer(4) == "204" && contract.released(1) == [wake.id])
    }

    @Test("Requests are answered in the order of their arrival", arguments: EngineKind.all)
    func order(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.subscribe(1, slots: 3) }
        for batch in 0..<4 {
            contract.step { requests in
                for number in stride(from: 10 + batch * 20, to: 30 + batch * 20, by: 4) {
                    requests.push(number, number % 5)
                    requests.statistics(number + 1)
                    requests.register(number + 2, number)
                    requests.push(number + 3, number % 5, topic: 1)
                }
            }
        }
        contract.settle()
        if kind.sharesStore {
            // Devices do not wait for each other, and no request waits for a count.
            #expect(Set(contract.answered) == Set([1] + Array(10..<90)) && contract.answered.count == 81)
            for device in 0..<5 {
                let pushes = stride(from: 10, to: 90, by: 4).flatMap { [$0, $0 + 3] }.filter { $0 % 5 == device }
                #expect(contract.answered.filter { pushes.contains($0) } == pushes, "device \(device)")
            }
        } else {
            #expect(contract.answered == [1] + Array(10..<90))
        }
        var begun: Set<Int> = []
        for heard in contract.heard {
            if case .subscribed(let stream, _) = heard { begun.insert(stream) }
            if case .wake(let wake) = heard { #expect(begun.contains(wake.stream), "a wake before its stream") }
        }
        #expect(contract.wakes.count == 3)
    }

    @Test("A now-or-never push launches with a free slot, and is discarded without one", arguments: EngineKind.all)
    func nowOrNever(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        contract.ask { $0.push(1, 1, expiration: 0) }
        #expect(contract.word(1) == "discarded")
        contract.ask { $0.subscribe(2, slots: 1) }
        #expect(contract.wakes.isEmpty, "an ended push does not launch later")
        contract.ask { $0.push(5, 2, isDryRun: true) }
        #expect(contract.word(5) == "launched" && contract.wakes.isEmpty, "a dry run takes no slot")
        contract.ask { $0.push(3, 2, expiration: 0) }
        #expect(contract.word(3) == "launched" && contract.wakes.map(\.push) == [EngineRig.apnsID(3)])
        contract.ask { $0.push(4, 3, expiration: 0) }
        #expect(contract.word(4) == "discarded", "the only slot is taken")
        let counters = try contract.counters()
        #expect((counters.accepted, counters.launched, counters.pending) == (3, 1, 0))
        #expect(counters.discarded[.expired] == 2)
    }

    @Test("An apns-id names the same push in either letter case", arguments: EngineKind.all)
    func letterCase(kind: EngineKind) throws {
        let contract = try EngineContract(kind)
        let number = 0xABC_DEF
        contract.ask { $0.push(1, 1, clientID: number) }
        contract.pass(seconds: 1)
        contract.ask { $0.push(2, 1, clientID: number, isUpperCase: true) }
        #expect(contract.word(1) == "scheduled" && contract.word(2) == "scheduled")
        #expect(try contract.counters().accepted == 1)
        let sent = try #require(contract.reply(2)).apnsID
        #expect(sent.upperCase != 0, "the answer keeps the letter case of the identifier")
        contract.ask { $0.push(3, 2, clientID: number + 1, isUpperCase: true) }
        contract.ask {
            $0.way(4, of: number, isUpperCase: true)
            $0.way(5, of: number + 1)
            $0.allPushes(6) { _ in }
        }
        #expect(contract.answer(4) == "200" && contract.answer(5) == "200")
        #expect(contract.member(4, "events", "0", "event") == "received")
        #expect(contract.member(5, "apnsID") == "f0cdab00-0000-0000-0000-000000000000")
        #expect(contract.member(6, "pushes", "0", "apnsID") == "F0CDAB00-0000-0000-0000-000000000000")
        #expect(contract.member(6, "pushes", "1", "apnsID") == "efcdab00-0000-0000-0000-000000000000")
    }

    @Test("A push names its device, topic and priority, and counts its launches", arguments: EngineKind.all)
    func members(kind: EngineKind) throws {
        let (contract, _) = try EngineContract.launched(kind)
        contract.ask { $0.way(3, of: 2) }
        let wake = try contract.lastWake()
        contract.ask { $0.report(4, wake.id, .failed) }
        contract.pass(seconds: 300)
        contract.ask { $0.way(5, of: 2) }
        for request in [3, 5] {
            #expect(contract.member(request, "topic") == EngineRig.topicName(0), "\(contract.text(request))")
            #expect(contract.member(request, "priority") == "5")
            #expect(!contract.member(request, "device").isEmpty)
        }
        #expect(contract.member(3, "attempts") == "1" && contract.member(5, "attempts") == "2")
    }
}
