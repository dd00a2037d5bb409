import Testing

@Suite("Moments in answers", .timeLimit(.minutes(15)))
struct EngineMomentTests {
    @Test("A removal has one timestamp, whichever step answers")
    func oneTimestamp() throws {
        let rig = try GatewayEngineRig()
        defer { rig.stop() }
        _ = try rig.ask(1) { $0.register(1, 1) }
        _ = try rig.ask(2) { $0.unregister(2, 1) }
        var timestamps: Set<Int64?> = []
        for request in 3...1500 { timestamps.insert(try rig.ask(request) { $0.push(request, 1) }.timestamp) }
        #expect(timestamps.count == 1)
        #expect(!timestamps.contains(nil))
    }
}
