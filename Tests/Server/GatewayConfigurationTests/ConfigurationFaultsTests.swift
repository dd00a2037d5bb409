import Foundation
import Gateway
import HTTPTransport
import Testing
import WakeGateTestKit
import Wire

@Suite("Faults of combined values")
struct ConfigurationFaultsTests {
    private func local() -> GatewayConfiguration {
        var configuration = GatewayConfiguration()
        configuration.edge = ListenSetting("127.0.0.1:0")
        configuration.certificateFile = "\(Self.folder)/server.pem"
        configuration.privateKeyFile = "\(Self.folder)/server.key"
        return configuration
    }

    /// The folder with the files that `wakegate dev` creates, made once for all of these tests.
    private static let folder: String = {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID())").path
        try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try? DevelopmentCertificates.make(in: folder)
        return folder
    }()

    @Test(
        "Addresses that other machines can reach are refused, with the address to set instead",
        arguments: [
            "[::]:2197", "0.0.0.0:1", "192.168.1.1:1", "example.com:1", "[fe80::1]:1", "127.0.0.1.example.com:1",
        ]
    )
    func foreign(address: String) {
        var configuration = self.local()
        configuration.edge = ListenSetting(address)
        configuration.plain = ListenSetting([address])
        #expect(configuration.faults().map(\.key).contains("edge"))
        #expect(configuration.faults().map(\.key).contains("plain"))
        let message =
            "edge: \(address) is not a loopback address, and without providerKeys or tls.clientCA providers "
            + "are not authenticated; set edge: \"127.0.0.1:2197\", or providerKeys: \"FOLDER\", "
            + "or tls.clientCA: \"FILE\""
        #expect(configuration.faults().map(\.description).contains(message))
    }

    @Test(
        "Providers may connect from other machines with authentication, over TLS unless insecure is set"
    )
    func providersAfar() {
        var configuration = self.local()
        configuration.edge = ListenSetting("[::]:2197")
        configuration.providerKeysFolder = "/"
        #expect(configuration.faults().isEmpty)
        configuration.plain = ListenSetting("[::]:2198")
        #expect(configuration.faults().map(\.key) == ["plain"])
        configuration.allowsRemoteCleartext = true
        #expect(configuration.faults().isEmpty)
        configuration.checksTokens = false
        #expect(configuration.faults().map(\.key) == ["edge", "plain"])
        configuration.checksTokens = true
        configuration.providerKeysFolder = "/nonexistent"
        #expect(configuration.faults().map(\.key) == ["providerKeys"])
    }

    @Test("Authorities of client certificates allow providers on other machines, too")
    func certificatesAfar() throws {
        let authority = try TestAuthority()
        var configuration = self.local()
        configuration.edge = ListenSetting("[::]:2197")
        configuration.clientCAFile = authority.certificate
        #expect(configuration.faults().isEmpty)
        configuration.clientCRLFile = "/nonexistent"
        #expect(configuration.faults().map(\.key) == ["tls.clientCRL"])
        configuration.clientCAFile = "/nonexistent"
        #expect(configuration.faults().map(\.key) == ["tls.clientCA"])
        configuration.clientCAFile = nil
        #expect(configuration.faults().map(\.key) == ["edge", "tls.clientCRL"])
    }

    @Test("Operators may connect from other machines, in cleartext if allowed, but never without authentication")
    func operatorsAfar() {
        var configuration = self.local()
        configuration.admin = ListenSetting("192.168.1.1:9197")
        let message =
            "admin: 192.168.1.1:9197 is not a loopback address, and tokens would cross the network in cleartext; "
            + "set admin: \"127.0.0.1:9197\", or insecure: true if the network is your own"
        #expect(configuration.faults().map(\.description) == [message])
        configuration.allowsRemoteCleartext = true
        #expect(configuration.faults().isEmpty)
        configuration.checksTokens = false
        #expect(configuration.faults().map(\.key) == ["admin"])
        #expect(configuration.faults().allSatisfy { $0.problem.hasSuffix("does not authenticate its clients") })
    }

    @Test(
        "Loopback and sockets of this machine are accepted",
        arguments: [
            "127.0.0.1:1", "127.1.2.3:0", "localhost:1", "[::1]:1", "unix:/tmp/x",
        ]
    )
    func loopback(address: String) {
        var configuration = self.local()
        configuration.edge = ListenSetting(address)
        #expect(configuration.faults().isEmpty)
    }

    @Test("The defaults of serve name every remedy at once")
    func defaults() {
        #expect(GatewayConfiguration().faults().map(\.key) == ["edge", "tls.certificate", "tls.key"])
    }

    @Test("An invalid certificate, and a key of another certificate, are found before a start")
    func certificate() {
        var configuration = self.local()
        configuration.certificateFile = "/dev/null"
        #expect(configuration.faults().map(\.key) == ["tls.certificate"])
        configuration = self.local()
        configuration.privateKeyFile = "\(Self.folder)/ca.key"
        #expect(configuration.faults().map(\.key) == ["tls.key"])
        #expect(configuration.faults().first?.problem.contains("key values mismatch") == true)
    }

    @Test("A missing file, a port given twice, and no listener at all are found")
    func others() {
        var configuration = self.local()
        configuration.certificateFile = "/nonexistent.pem"
        configuration.admin = ListenSetting("127.0.0.1:5")
        configuration.plain = ListenSetting("127.0.0.1:5")
        #expect(configuration.faults().map(\.key) == ["plain", "tls.certificate"])
        configuration = self.local()
        configuration.edge = .off
        configuration.admin = .off
        #expect(configuration.faults().map(\.problem) == ["every listener is off"])
    }
}
