import Gateway
import ServiceManager
import Testing
import Wire

@Suite("Sockets that the service manager opened")
struct InheritedSocketTests {
    private func socket(_ name: String, _ address: String) -> InheritedSocket {
        InheritedSocket(descriptor: 3, name: name, address: address)
    }

    @Test("A listener with sockets stands where they do; one without stands where it was configured")
    func adopted() throws {
        var configuration = GatewayConfiguration()
        configuration.plain = ListenSetting("127.0.0.1:2198")
        let sockets = [
            self.socket("edge", "[::]:443"), self.socket("admin", "127.0.0.1:9"), self.socket("admin", "unix:/run/a"),
        ]
        try configuration.adopt(sockets)
        #expect(configuration.edge == ListenSetting("[::]:443"))
        #expect(configuration.admin == ListenSetting(["127.0.0.1:9", "unix:/run/a"]))
        #expect(configuration.plain == ListenSetting("127.0.0.1:2198"))
        #expect(configuration.inheritedSockets == sockets)
    }

    @Test("A socket that is for no listener is refused with its name and what to write")
    func stranger() throws {
        var configuration = GatewayConfiguration()
        let sockets = [self.socket("edge", "[::]:443"), self.socket("wakegate.socket", "[::]:80")]
        let error = #expect(throws: ConfigurationError.self) { try configuration.adopt(sockets) }
        #expect(
            error?.description == "the socket \"wakegate.socket\": passed by the service manager for [::]:80, is for "
                + "no listener; set FileDescriptorName= in its unit to one of: edge, plain, admin"
        )
        #expect(configuration.edge == GatewayConfiguration().edge)
    }

    @Test("A socket that others reach is held to what an address in the configuration is held to")
    func exposed() throws {
        var configuration = GatewayConfiguration()
        configuration.edge = .off
        try configuration.adopt([self.socket("admin", "[::]:9197")])
        #expect(configuration.faults().map(\.key) == ["admin"])
    }
}
