import Testing

@Suite("What a loop finds that was long away", .timeLimit(.minutes(15)))
struct EffectOrderTests {
    @Test("The effects of many steps are in their order, each with its own bytes")
    func joined() throws {
        let rig = try GatewayEngineRig()
        rig.step { $0.subscribe(1, slots: 64) }
        let requests = 100..<140
        for request in requests {
            rig.step {
                $0.push(request, request, collapseID: Array(repeating: UInt8(ascii: "c"), count: request - 100))
                $0.statistics(request + 1000)
            }
        }
        rig.stop()
        #expect(rig.told.first?.kind == .subscribed)
        #expect(rig.wakes.map { $0.integer("payload", "n") } == requests.map { Int64($0) })
        #expect(rig.wakes.map { $0.string("device") } == requests.map { GatewayEngineRig.token($0) })
        #expect(rig.wakes.map { $0.string("collapseID")?.count ?? 0 } == requests.map { $0 - 100 })
        let answers = rig.told.filter { $0.kind == .push || $0.kind == .answer }
        #expect(answers.map(\.request) == requests.flatMap { [$0, $0 + 1000] })
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(answers.compactMap { $0.integer("pushes", "accepted") } == requests.map { Int64($0 - 99) })
    }
}
