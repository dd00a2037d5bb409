import Gateway
import Storage
import Testing

@Suite("Where a gateway keeps what it keeps")
struct GatewayStoreTests {
    @Test("The history has the configured bounds on a disk, and those of memory in memory")
    func historyLimits() throws {
        var configuration = GatewayConfiguration()
        configuration.limits.historyBytesMax = 100 << 20
        configuration.limits.historySeconds = 60
        configuration.store = .sqlite
        let configured = HistoryLimits(bytesMax: 100 << 20, ageMillisecondsMax: 60_000)
        #expect(GatewayStore(configuration).historyLimits == configured)
        configuration.store = .memory
        #expect(GatewayStore(configuration).historyLimits == .inMemory)
        configuration.store = .postgresql(try DatabaseAddress("postgresql:///wakegate"))
        #expect(GatewayStore(configuration).historyLimits == configured)
    }
}
