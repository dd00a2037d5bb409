import Testing
import WakeWorker
import Wire

@Suite("What a worker says of wakes that it has no handler for")
struct RefusedKindsTests {
    @Test("Each kind is said once, however many of its wakes come")
    func once() throws {
        let (refresh, session) = (try #require(WakeKind("appRefresh")), try #require(WakeKind("urlSession")))
        var kinds = RefusedKinds()
        let said = [refresh, refresh, session, refresh, session].map { kinds.isFirst($0) }
        #expect(said == [true, false, true, false, false])
    }

    @Test("Of a peer that makes kinds up no more than so many are said and remembered")
    func bound() throws {
        var kinds = RefusedKinds()
        let names = (1...100).map { String(repeating: "a", count: $0 % WakeKind.lengthMax + 1) }
        let said = names.count { name in WakeKind(name).map { kinds.isFirst($0) } == true }
        #expect(said == RefusedKinds.countMax)
    }
}
