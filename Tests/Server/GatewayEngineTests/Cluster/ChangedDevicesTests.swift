import Gateway
import Testing
import WakeGateTestKit

@Suite("The devices whose conditions other gateways changed")
struct ChangedDevicesTests {
    @Test("A failure counts until its devices are read, however many reads had failed before")
    func failures() {
        var devices = ChangedDevices()
        let (bad, good) = (EngineRig.token(1), EngineRig.token(2))
        devices.append(bad, countMax: 2)
        for moment in 1...3 as ClosedRange<Int64> {
            let taken = devices.take()
            devices.failed(taken, at: moment)
        }
        devices.append(good, countMax: 2)
        #expect(devices.hasFailed)
        devices.succeeded([good])
        #expect(devices.hasFailed)
        devices.succeeded([bad])
        #expect(!devices.hasFailed)
    }
}
