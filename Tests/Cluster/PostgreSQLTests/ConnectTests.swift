import Foundation
import Glibc
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

    @Test("A wrong password, user or database fails with its own error kind, and no error shows the password")
    func refused() throws {
        let server = try PostgresServer.shared()
        try server.query("DROP ROLE IF EXISTS secured; CREATE ROLE secured LOGIN PASSWORD 'r1ght'")
        let place = "127.0.0.1:\(server.port)"
        let wrong = try self.failure("postgresql://secured:wr0ng@\(place)/postgres")
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

        let right = try LinkUnderTest.connected("postgresql://secured:r1ght@\(place)/postgres")
        #expect(right.run { $0.query("SELECT current_user::text") }.results.first?.text(0, 0) == "secured")
        #expect(right.link.server == place)
    }

    @Test("A password is read from a passfile")
    func passfile() throws {
        let server = try PostgresServer.shared()
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-pgpass-\(UUID())")
        defer { try? FileManager.default.removeItem(at: file) }
        try server.query("CREATE ROLE filed LOGIN PASSWORD 'fr0mfile'; GRANT filed TO postgres")
        try Data("127.0.0.1:\(server.port):*:filed:fr0mfile\n".utf8).write(to: file)
        _ = unsafe chmod(file.path, 0o600)
        let address = "postgresql://filed@127.0.0.1:\(server.port)/postgres?passfile=\(file.path)"
        let link = try LinkUnderTest.connected(address)
        #expect(link.link.phase == .ready)
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

@Suite("Addresses of databases")
struct AddressTests {
    @Test(
        "An address is shown without its password",
        arguments: [
            ("postgresql://zora:s3cret@127.0.0.1/wakes", "postgresql://zora@127.0.0.1:5432/wakes"),
            ("postgres://zora:s3cret@localhost:6000/wakes", "postgresql://zora@localhost:6000/wakes"),
            ("postgresql://zora@/wakes?host=/run/x&password=s3cret", "postgresql://zora@/run/x:5432/wakes"),
            ("postgresql://:s3cret@[::1]:1,localhost:2/wakes", "postgresql://[::1]:1,localhost:2/wakes"),
            (
                "postgresql://zora:s3cret@localhost/w?target_session_attrs=read-write&sslpassword=s3cret",
                "postgresql://zora@localhost:5432/w?target_session_attrs=read-write"
            ),
            ("postgresql://zora:?s3cret@localhost/wakes", "postgresql://zora@localhost:5432/wakes"),
            ("postgresql://zora:s3cret%40x@localhost/wakes", "postgresql://zora@localhost:5432/wakes"),
        ]
    )
    func shown(text: String, shown: String) throws {
        let address = try PostgresAddress(text)
        #expect(address.description == shown)
        #expect(!"\(address) \(String(reflecting: address))".contains("s3cret"))
        var dumped = ""
        dump(address, to: &dumped)
        #expect(!dumped.contains("s3cret"))
        var dumpedWithin = ""
        dump([address: 1], to: &dumpedWithin)
        #expect(!dumpedWithin.contains("s3cret"))
    }

    @Test(
        "A malformed address is refused, and the error contains no part of it",
        arguments: [
            "postgresql://zora:s3cret@x@localhost/wakes", "postgresql://zora:s3/cret@localhost/wakes",
            "postgresql://zora:s3#cret@localhost:x/wakes", "postgresql://zora:s3cret%zz@localhost/wakes",
            "postgresql://zora@localhost/wakes?pasword=s3cret", "postgresql://localhost:99999/wakes",
            "postgresql://a,b:1,c:2:3/wakes?s3cret", "host=localhost password=s3cret", "sqlite", "",
            "postgresql://[::1/s3cret", "postgresql://a,/s3cret",
        ]
    )
    func refused(text: String) throws {
        let error = try #require(throws: PostgresError.self) { try PostgresAddress(text, isInsecureAllowed: true) }
        #expect(error.kind == .invalidAddress)
        for part in ["cret", "zora"] { #expect(!error.description.contains(part), "\(error)") }
        #expect(error.description.contains("postgresql://user@host1:5432"))
    }

    @Test(
        "A server that is not on loopback must prove its identity",
        arguments: [
            "postgresql://db1/wakes", "postgresql://db1/wakes?sslmode=require", "postgresql://10.0.0.1/wakes",
            "postgresql://localhost,db2/wakes", "postgresql://localhost/wakes?hostaddr=10.0.0.1",
            "postgresql://127.0.0.1.example.com/wakes", "postgresql://128.0.0.1/wakes?sslmode=verify-ca",
        ]
    )
    func insecure(text: String) throws {
        let error = try #require(throws: PostgresError.self) { try PostgresAddress(text) }
        #expect(error.kind == .insecure)
        #expect(error.description.contains("sslmode=verify-full"))
        #expect(!error.server.isEmpty)
        #expect(throws: Never.self) { try PostgresAddress(text, isInsecureAllowed: true) }
    }

    @Test(
        "On loopback, and with proof, the address is accepted",
        arguments: [
            "postgresql://localhost/wakes", "postgresql://127.1.2.3/wakes", "postgresql://[::1]/wakes",
            "postgresql:///wakes", "postgresql:///wakes?host=/run/postgresql",
            "postgresql://db1,db2/w?sslmode=verify-full",
            "postgresql://db1/wakes?hostaddr=127.0.0.1",
        ]
    )
    func secure(text: String) throws {
        #expect(throws: Never.self) { try PostgresAddress(text) }
    }

    @Test("A password in an address is detected")
    func password() throws {
        #expect(try PostgresAddress("postgresql://zora:x@localhost/wakes").hasPassword)
        #expect(try PostgresAddress("postgresql:///wakes?password=x").hasPassword)
        #expect(try !PostgresAddress("postgresql://zora@localhost/wakes").hasPassword)
        #expect(try PostgresAddress("postgresql://zora@localhost/wakes").database == "wakes")
        #expect(try PostgresAddress("postgresql://localhost").database.isEmpty)
    }
}
