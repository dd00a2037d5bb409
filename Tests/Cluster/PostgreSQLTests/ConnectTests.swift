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

    @Test("A wrong password, a wrong user and a wrong database are told apart, without the password")
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

        let stranger = try self.failure("postgresql://stranger@\(place)/postgres")
        #expect(stranger.kind == .notAllowed)
        #expect(stranger.state == "28000")

        let database = try self.failure("postgresql://postgres@\(place)/nowhere")
        #expect(database.kind == .noDatabase)
        #expect(database.message.contains("database \"nowhere\" does not exist"))
        #expect(!database.message.contains("3D000"))
        #expect(!database.message.contains("LOCATION"))

        let right = try LinkUnderTest.connected("postgresql://secured:r1ght@\(place)/postgres")
        #expect(right.run { $0.query("SELECT current_user::text") }.results.first?.text(0, 0) == "secured")
        #expect(right.link.server == place)
    }

    @Test("A password comes from a passfile")
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

    @Test("Where nobody listens, the error says so and what to look at")
    func nobody() throws {
        let error = try self.failure("postgresql://postgres@127.0.0.1:1/postgres")
        #expect(error.kind == .unreachable)
        #expect(error.server == "127.0.0.1:1")
        #expect(error.message.contains("Connection refused"))
        #expect(error.remedy.contains("firewall"))
        let socket = try self.failure("postgresql://postgres@/postgres?host=/nowhere")
        #expect(socket.kind == .unreachable)
        #expect(socket.message.contains("No such file or directory"))
        let both = try self.failure("postgresql://postgres@127.0.0.1:1,127.0.0.1:2/postgres")
        #expect(both.message.contains("127.0.0.1:1"))
        #expect(both.message.contains("127.0.0.1:2"))
    }

    @Test("A socket file is a way, too")
    func socketFile() throws {
        let server = try PostgresServer.shared()
        let link = try LinkUnderTest.connected(server.socketAddress())
        #expect(link.run { $0.query("SELECT 1::int8") }.results.first?.int64(0, 0) == 1)
        #expect(!link.link.isEncrypted)
        #expect(link.link.version >= 150_000)
    }

    @Test("One connection too many is told as that")
    func tooMany() throws {
        let server = try PostgresServer.shared()
        try server.query("CREATE ROLE single LOGIN CONNECTION LIMIT 1")
        let address = server.address(user: "single")
        let first = try LinkUnderTest.connected(address)
        let error = try self.failure(address)
        #expect(error.kind == .tooManyConnections)
        #expect(first.link.phase == .ready)
    }
}
