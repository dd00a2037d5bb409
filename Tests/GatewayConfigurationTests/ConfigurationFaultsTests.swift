import Gateway
import Testing

@Suite("What a combination of values forbids")
struct ConfigurationFaultsTests {
    private func local() -> GatewayConfiguration {
        var configuration = GatewayConfiguration()
        configuration.edge = ListenSetting("127.0.0.1:0")
        configuration.certificateFile = "/dev/null"
        configuration.privateKeyFile = "/dev/null"
        return configuration
    }

    @Test("A gateway on loopback with a certificate can start")
    func good() {
        #expect(self.local().faults().isEmpty)
    }

    @Test(
        "Addresses that other machines can reach are refused, with the address to set",
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
            "edge: \(address) is not a loopback address, and this build cannot ask callers for proof; "
            + "set edge: \"127.0.0.1:2197\""
        #expect(configuration.faults().map(\.description).contains(message))
    }

    @Test(
        "Loopback and sockets of this machine are taken",
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
