import Foundation
import Gateway
import Policy
import ServiceManager
import Synchronization
import Testing
import WakeGateTestKit

@Suite("A reload inside", .timeLimit(.minutes(15)))
struct ReloadServiceTests {
    /// Keeps what is logged, for whoever waits for it.
    private final class Sink: LogSink, @unchecked Sendable {
        private let condition = NSCondition()
        private var taken: [LogLine] = []

        func write(_ line: LogLine, _: LogFormat) -> Bool {
            self.condition.withLock {
                self.taken.append(line)
                self.condition.broadcast()
                return true
            }
        }

        /// Waits for the next line about one of `events`, and takes it and all before it.
        func next(_ events: Set<GatewayEvent>) throws -> LogLine {
            try self.condition.withLock {
                let limit = Date(timeIntervalSinceNow: 60)
                while true {
                    if let place = self.taken.firstIndex(where: { events.contains($0.event) }) {
                        defer { self.taken.removeSubrange(...place) }
                        return self.taken[place]
                    }
                    try #require(self.condition.wait(until: limit), "no \(events) in \(self.taken.map(\.text))")
                }
            }
        }
    }

    /// What the next reload reads, as if it had been checked: a file may go between the check and its use.
    private final class Source: Sendable {
        let configuration: Mutex<GatewayConfiguration>

        init(_ configuration: GatewayConfiguration) { self.configuration = Mutex(configuration) }
    }

    enum Gone: CaseIterable {
        case providerKeys, clientCA

        var key: String { self == .providerKeys ? "providerKeys" : "tls.clientCA" }
    }

    @Test("A file that has gone since it was checked leaves everything as it was", arguments: Gone.allCases)
    func rollback(gone: Gone) throws {
        let authority = try TestAuthority()
        var configuration = GatewayConfiguration()
        configuration.edge = .off
        configuration.admin = ListenSetting("127.0.0.1:0")
        configuration.store = .memory
        configuration.asksForTokens = false
        let keys = authority.folder.appendingPathComponent("keys")
        try FileManager.default.createDirectory(at: keys, withIntermediateDirectories: true)
        configuration.providerKeysFolder = keys.path
        configuration.clientCAFile = authority.certificate
        let source = Source(configuration)
        let sink = Sink()
        let log = GatewayLog(level: configuration.logLevel, format: configuration.logFormat, sink: sink)
        let gateway = try Gateway(
            configuration,
            source: ConfigurationSource(reloadsOnHangup: true) { source.configuration.withLock { $0 } },
            log: log,
            onIdle: {}
        )
        try gateway.start()
        defer { gateway.stop() }

        var faulty = configuration
        switch gone {
        case .providerKeys: faulty.providerKeysFolder = "/nonexistent"
        case .clientCA: faulty.clientCAFile = "/nonexistent"
        }
        try faulty.policy.set(.launchInterval, to: 5)
        faulty.drainTimeoutMilliseconds = 5
        faulty.logLevel = .error
        source.configuration.withLock { $0 = faulty }
        gateway.reload()
        #expect(try sink.next([.configurationFault, .reloaded]).fields["key"] == gone.key)
        #expect(try sink.next([.reloadRefused, .reloaded]).event == .reloadRefused)
        #expect(gateway.drainTimeoutMilliseconds == 10_000)

        // To go back to what it was is to change nothing.
        source.configuration.withLock { $0 = configuration }
        gateway.reload()
        let fields = ["changed": "0", "needsRestart": "0", "policyVersion": "1"]
        #expect(try sink.next([.reloaded, .reloadRefused]).fields == fields)
    }
}
