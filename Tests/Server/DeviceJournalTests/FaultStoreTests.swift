import Engine
import Testing
import WakeGateTestKit

@Suite("A store that fails on command", .timeLimit(.minutes(15)))
struct FaultStoreTests {
    @Test("Whatever operation fails, committed batches are found, and the failed one whole or not at all")
    func everyOperation() throws {
        for isLasting in [false, true] {
            var outcomes: Set<Int> = []
            for number in 0... {
                let isKept = number % 2 == 0
                var store = SimulatedStore()
                store.failOperation(number, isLasting: isLasting)
                var workload = FaultWorkload(seed: UInt64(number))
                var promises = FaultPromises()
                Self.use(store, &workload, &promises)
                guard store.faults > 0 else { break }
                let old = store
                store = store.reopened(keepsUnresolved: isKept)
                #expect(try promises.found(store.loadAll()) == nil, "operation \(number)")
                #expect(try store.beginTellingLoss() == nil)
                try store.commit(workload.batch())
                #expect(old.misuses.isEmpty && store.misuses.isEmpty)
                outcomes.insert(promises.possible.count)
            }
            #expect(outcomes == [1, 2])
        }
    }

    private static func use(_ store: SimulatedStore, _ workload: inout FaultWorkload, _ promises: inout FaultPromises) {
        guard let found = try? store.loadAll() else { return }
        #expect(promises.found(found) == nil)
        do { try store.begin() } catch { return }
        for _ in 0..<5 {
            let batch = workload.batch()
            do {
                try store.commit(batch)
                promises.committed(batch)
            } catch {
                return promises.failed(batch)
            }
        }
    }

    @Test("It notes what its user must not do")
    func misuses() throws {
        let store = SimulatedStore()
        var workload = FaultWorkload(seed: 1)
        _ = try store.loadAll()
        try store.begin()
        try store.commit(workload.batch())
        #expect(store.misuses.isEmpty)
        try store.begin()
        #expect(store.misuses == ["beginning after begun"])
        _ = try store.loadAll()
        #expect(store.misuses.last == "load after begun")
        try store.commit(workload.batch())
        #expect(store.misuses.last == "commit after loaded")
        store.failOperation(store.operations)
        #expect(throws: StoreError.self) { try store.commit(workload.batch()) }
        #expect(store.unresolved == nil)
        try? store.commit(workload.batch())
        #expect(store.misuses.last == "commit after failed")
        _ = store.reopened(keepsUnresolved: false)
        try? store.commit(workload.batch())
        #expect(store.misuses.last == "commit after dead")
    }

    @Test("A batch whose sync failed is found when the disk kept it")
    func unresolved() throws {
        for keeps in [false, true] {
            let store = SimulatedStore()
            store.failOperation(1)
            #expect(throws: StoreError.self) { try store.commit([RecordKey(.clock): [1]]) }
            let next = store.reopened(keepsUnresolved: keeps)
            #expect(try next.loadAll() == (keeps ? [RecordKey(.clock): [1]] : [:]))
        }
    }

    @Test("A promise that is broken is seen")
    func brokenPromises() {
        var promises = FaultPromises()
        promises.committed([RecordKey(.clock): [1], RecordKey(.device, 1): [2]])
        promises.failed([RecordKey(.clock): [3], RecordKey(.device, 1): [4]])
        #expect(promises.found([RecordKey(.clock): [1]]) != nil)
        #expect(promises.found([RecordKey(.clock): [3], RecordKey(.device, 1): [2]]) != nil)
        #expect(promises.found([RecordKey(.clock): [3], RecordKey(.device, 1): [4]]) == nil)
        #expect(promises.found([RecordKey(.clock): [1], RecordKey(.device, 1): [2]]) == nil)
        promises.committed([RecordKey(.device, 2): [5]])
        #expect(
            promises.found([RecordKey(.clock): [3], RecordKey(.device, 1): [4], RecordKey(.device, 2): [5]]) != nil
        )
        #expect(
            promises.found([RecordKey(.clock): [1], RecordKey(.device, 1): [2], RecordKey(.device, 2): [5]]) == nil
        )
    }
}
