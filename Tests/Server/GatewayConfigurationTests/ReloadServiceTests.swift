import Foundation
import Gateway
import Policy
import ServiceManager
import Synchronization
import Testing
import WakeGateTestKit

@Suite("A reload inside", .timeLimit(.minutes(15)))
struct ReloadServiceTests {
    /// The configuration that the next reload reads. It is not checked, because a file may disappear between check and
    /// use.
    private final class Source: Sendable {
        let configuration: Mutex<GatewayConfiguration>

        init(_ configuration: GatewayConfiguration) { self.configuration = Mutex(configuration) }

        func read() -> GatewayConfiguration { self.configuration.withLock { $0 } }
    }

    enum Gone: CaseIterable {
        case providerKeys, clientCA

        var key: String { self == .providerKeys ? "providerKeys" : "tls.clientCA" }
    }

    /// The configuration of a gateway without a state folder.
    private static var open: GatewayConfiguration {
        var configuration = GatewayConfiguration()
        configuration.edge = .off
        configuration.admin = ListenSetting("127.0.0.1:0")
        configuration.store = .memory
        configuration.checksTokens = false
        return configuration
    }

    /// Starts a gateway that reads its configuration again from `source`.
    private static func gateway(_ source: Source, _ sink: RecordingSink) throws -> Gateway {
        let configuration = source.configuration.withLock { $0 }
        let gateway = try Gateway(
            configuration,
            source: ConfigurationSource(reloadsOnHangup: true) { source.read() },
            log: GatewayLog(level: configuration.logLevel, format: configuration.logFormat, sink: sink),
            onIdle: {}
        )
        try gateway.start()
        return gateway
    }

    @Test("A file that disappeared after the check leaves everything unchanged", arguments: Gone.allCases)
    func rollback(gone: Gone) throws {
        let authority = try TestAuthority()
        var configuration = Self.open
        let keys = authority.folder.appendingPathComponent("keys")
        try FileManager.default.createDirectory(at: keys, withIntermediateDirectories: true)
        configuration.providerKeysFolder = keys.path
        configuration.clientCAFile = authority.certificate
        let source = Source(configuration)
        let sink = RecordingSink()
        let gateway = try Self.gateway(source, sink)
        defer { gateway.stop() }

        var faulty = configuration
        switch gone {
        case .providerKeys: faulty.providerKeysFolder = "/nonexistent"
        case .clientCA: faulty.clientCAFile = "/nonexistent"
        }
        #expect(PolicyParameter.launchInterval.set(5, in: &faulty.policy))
        faulty.drainTimeoutMilliseconds = 5
        faulty.logLevel = .error
        source.configuration.withLock { $0 = faulty }
        gateway.reload()
        #expect(try sink.next([.configurationFault, .reloaded]).fields["key"] == gone.key)
        #expect(try sink.next([.reloadRefused, .reloaded]).event == .reloadRefused)
        #expect(gateway.drainTimeoutMilliseconds == 10_000)

        // Reverting the configuration changes nothing.
        source.configuration.withLock { $0 = configuration }
        gateway.reload()
        let fields = ["changed": "0", "needsRestart": "0", "policyVersion": "1"]
        #expect(try sink.next([.reloaded, .reloadRefused]).fields == fields)
    }

    @Test("A reload accepts that the next start has neither an edge nor its certificate, whose files are gone")
    func edgeOff() throws {
        let authority = try TestAuthority()
        var configuration = Self.open
        configuration.edge = ListenSetting("127.0.0.1:0")
        let pair = try authority.issue("/CN=localhost")
        configuration.certificateFile = pair
        configuration.privateKeyFile = pair
        let source = Source(configuration)
        let sink = RecordingSink()
        let gateway = try Self.gateway(source, sink)
        defer { gateway.stop() }

        try FileManager.default.removeItem(atPath: pair)
        var without = Self.open
        without.drainTimeoutMilliseconds = 5
        source.configuration.withLock { $0 = without }
        for changed in ["1", "0"] {
            gateway.reload()
            let fields = ["changed": changed, "needsRestart": "3", "policyVersion": "1"]
            #expect(try sink.next([.reloaded, .reloadRefused]).fields == fields)
        }
        #expect(gateway.drainTimeoutMilliseconds == 5)
    }
}
