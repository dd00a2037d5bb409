import Testing

@Suite("Lists of topics", .timeLimit(.minutes(15)))
struct TopicListTests {
    @Test("Those that are asked for at once are written one a step, in their order, and a push waits for one alone")
    func crowd() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        try rig.ask(1) { $0.register(1, 1) }
        rig.step { requests in
            for request in 2...5 { requests.topics(request) }
            requests.push(6, 1)
        }
        try rig.answers(6...6)
        for request in 2...5 {
            try rig.answers(request...request)
            #expect(request == 5 || rig.answer(request + 1) == nil)
            rig.step()
        }
        for request in 2...6 { #expect(rig.answerCount(request) == 1) }
    }

    @Test("While one waits for a commit the next is not written, and no step is due for it")
    func slowCommit() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        rig.gate.close()
        rig.step { $0.register(1, 1) }
        try rig.waitForCommit()
        let wait = rig.step { requests in for request in 2...4 { requests.topics(request) } }
        #expect(wait > 0)
        rig.gate.open()
        try rig.answers(2...2)
        #expect(rig.answer(3) == nil)
        rig.step()
        rig.step()
        try rig.answers(3...4)
    }
}
