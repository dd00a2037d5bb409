import DeviceEngine
import LaunchPolicy
import Testing
import WakeGateTestKit

@Suite("A store on command", .timeLimit(.minutes(1)))
struct CommandedStoreTests {
    @Test("Each commit fails exactly when it was told to, and what failed is not kept")
    func fails() throws {
        for failing in 0..<4 {
            let rig = EngineRig()
            let store = CommandedStore()
            store.failures = [failing]
            for device in 0..<4 {
                rig.push(device)
                let step = rig.engine.takeStep()
                if device == failing {
                    #expect(throws: StoreError.self) { try store.commit(step) }
                } else {
                    try store.commit(step)
                }
            }
            let kept = store.committed.flatMap(\.devices)
            #expect(kept == (0..<4).filter { $0 != failing }.map { rig.index($0) })
        }
    }

    @Test("What happens while a commit is under way belongs to the next step")
    func delays() throws {
        let rig = EngineRig()
        let store = CommandedStore()
        store.whileCommitting = { number in
            if number == 0 { rig.push(2) }
        }
        rig.push(1)
        try store.commit(rig.engine.takeStep())
        #expect(store.committed.first?.devices == [rig.index(1)])
        #expect(rig.engine.takeStep().devices == [rig.index(2)])
    }
}
