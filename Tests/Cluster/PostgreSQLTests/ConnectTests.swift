import Engine
import Foundation
import PostgresStore
import Testing
import WakeGateTestKit
import Wire

@Suite("Making connections")
struct ConnectTests {
    private func failure(_ text: String, hostMilliseconds: Int64 = 30_000) throws -> PostgresError {
        let link = LinkUnderTest(try PostgresAddress(text), hostMilliseconds: hostMilliseconds)
        #expect(link.link.phase == .failed)
        #expect(link.link.isLost)
        return try #require(link.link.failure)
    }

    @Test("Passwords are from a passfile; a wrong password, user or database fails with its kind, without the password")
    func refused() throws {
        let server = try PostgresServer.shared()
        try server.query("DROP ROLE IF EXISTS secured; CREATE ROLE secured LOGIN PASSWORD 'r1ght'")
        let place = "127.0.0.1:\(server.port)"
        let folder = try TemporaryFolder()
        defer { withExtendedLifetime(folder) {} }
        func address(password: String) -> String {
            let file = "\(folder.path)/passfile"
            let line = Data("127.0.0.1:\(server.port):*:secured:\(password)\n".utf8)
            #expect(
                FileManager.default.createFile(atPath: file, contents: line, attributes: [.posixPermissions: 0o600])
            )
            return "postgresql://secured@\(place)/postgres?passfile=\(file)"
        }
        let wrong = try self.failure(address(password: "wr0ng"))
        #expect(wrong.kind == .notAllowed)
        #expect(wrong.state == "28P01")
        #expect(wrong.server == place)
        #expect(wrong.message.contains("password authentication failed for user \"secured\""))
        #expect(wrong.remedy.contains("pgpass"))
        #expect(!"\(wrong) \(String(reflecting: wrong))".contains("wr0ng"))

        let missing = try self.failure("postgresql://secured@\(place)/postgres?passfile=/dev/null")
        #expect(missing.kind == .notAllowed)
        #expect(missing.message.contains("no password supplied"))

        let unknownPeer = try self.failure("postgresql://stranger@\(place)/postgres")
        #expect(unknownPeer.kind == .notAllowed)
        #expect(unknownPeer.state == "28000")

        let database = try self.failure("postgresql://postgres@\(place)/nowhere")
        #expect(database.kind == .noDatabase)
        #expect(database.message.contains("database \"nowhere\" does not exist"))
        #expect(!database.message.contains("3D000"))
        #expect(!database.message.contains("LOCATION"))

        let right = try LinkUnderTest.connected(address(password: "r1ght"))
        #expect(right.run { $0.query("SELECT current_user::text") }.results.first?.text(0, 0) == "secured")
        #expect(right.link.server == place)
    }

    @Test(
        "A server on another machine that need not prove its identity is refused, unless that is allowed",
        arguments: [
            "postgresql://192.0.2.1/wakes", "postgresql://192.0.2.1/wakes?sslmode=require",
            "postgresql://localhost/wakes?hostaddr=192.0.2.1", "postgresql://127.0.0.1:1,192.0.2.1/wakes",
            "postgresql://198.51.100.1/wakes?sslmode=verify-ca",
        ]
    )
    func insecure(text: String) throws {
        let address = try PostgresAddress(text)
        let error = try #require(LinkUnderTest(address).link.failure)
        #expect(error.kind == .insecure)
        #expect(error.description.contains("sslmode=verify-full"))
        let allowed = LinkUnderTest(address.completed(allowsUnverifiedServers: true), hostMilliseconds: 1)
        #expect(allowed.link.failure?.kind == .unreachable)
    }

    @Test("Servers are tried from the one that is named on, around to the one before it", arguments: 0...3)
    func firstHost(first: Int) throws {
        let server = try PostgresServer.shared()
        let (none, good) = ("127.0.0.1:1", "127.0.0.1:\(server.port)")
        let address = try PostgresAddress("postgresql://postgres@\(none),\(good),\(good)/postgres")
        let link = LinkUnderTest(address, firstHost: first)
        #expect(link.link.phase == .ready)
        #expect(link.link.hostIndex == [1, 1, 2, 1][first])
    }

    @Test("An unreachable server is named in the error, with advice to check the firewall")
    func nobody() throws {
        let error = try self.failure("postgresql://postgres@127.0.0.1:1/postgres")
        #expect(error.kind == .unreachable)
        #expect(error.server == "127.0.0.1:1")
        #expect(error.message.contains("Connection refused"))
        #expect(error.remedy.contains("firewall"))
        // Two hosts without ports.
        let list = try self.failure("postgresql://postgres@%2Fnowhere,%2Fno-socket/postgres")
        #expect(list.message.contains("No such file or directory"), "\(list)")
        let socket = try self.failure("postgresql://postgres@/postgres?host=/nowhere")
        #expect(socket.kind == .unreachable)
        #expect(socket.message.contains("No such file or directory"))
        let both = try self.failure("postgresql://postgres@127.0.0.1:1,127.0.0.1:2/postgres")
        #expect(both.message.contains("127.0.0.1:1"))
        #expect(both.message.contains("127.0.0.1:2"))
    }

    @Test("A connection can use a socket file")
    func socketFile() throws {
        let server = try PostgresServer.shared()
        let link = try LinkUnderTest.connected(server.socketAddress())
        #expect(link.run { $0.query("SELECT 1::int8") }.results.first?.int64(0, 0) == 1)
        #expect(link.isEncrypted == false)
        #expect(link.link.version >= 150_000)
    }
}

@Suite("Connections with TLS")
struct TLSTests {
    @Test("A server is trusted only if the authority certifies it for the name in the address")
    func verified() throws {
        let (authority, unknownPeer) = (try TestAuthority(), try TestAuthority("Another"))
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
        #expect(link.isEncrypted == true)
        let unknown = LinkUnderTest(try PostgresAddress(address("localhost", unknownPeer))).link.failure
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
