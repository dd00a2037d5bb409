import PostgresStore
import Testing
import WakeGateTestKit

@Suite("Connections with TLS")
struct TLSTests {
    @Test("A server is believed that the authority vouches for by the name of the address, and no other")
    func verified() throws {
        let (authority, stranger) = (try TestAuthority(), try TestAuthority("Another"))
        let certificate = try authority.issue(
            "/CN=localhost",
            extensions: "subjectAltName = DNS:localhost\nextendedKeyUsage = serverAuth"
        )
        let server = try PostgresServer(PostgresServer.Options(isDurable: false, certificate: certificate))
        func address(_ host: String, _ authority: TestAuthority) -> String {
            "postgresql://postgres@\(host):\(server.port)/postgres"
                + "?sslmode=verify-full&sslrootcert=\(authority.certificate)"
        }
        let link = try LinkUnderTest.connected(address("localhost", authority))
        #expect(link.link.isEncrypted)
        let unknown = LinkUnderTest(try PostgresAddress(address("localhost", stranger))).link.failure
        #expect(unknown?.kind == .untrusted)
        #expect(unknown?.message.contains("certificate verify failed") == true)
        let other = LinkUnderTest(try PostgresAddress(address("127.0.0.1", authority))).link.failure
        #expect(other?.kind == .untrusted)
        let plain = try PostgresServer.shared()
        let none = LinkUnderTest(
            try PostgresAddress("postgresql://postgres@127.0.0.1:\(plain.port)/postgres?sslmode=require")
        )
        #expect(none.link.failure?.kind == .untrusted)
    }
}
