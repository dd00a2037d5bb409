import PostgresStore
import Testing

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
        "What is no address is refused without a word of it",
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
        "Off loopback the server must prove who it is",
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
        "On loopback, and with a proof, it is let be",
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

    @Test("Whether a password stands in it is known")
    func password() throws {
        #expect(try PostgresAddress("postgresql://zora:x@localhost/wakes").hasPassword)
        #expect(try PostgresAddress("postgresql:///wakes?password=x").hasPassword)
        #expect(try !PostgresAddress("postgresql://zora@localhost/wakes").hasPassword)
        #expect(try PostgresAddress("postgresql://zora@localhost/wakes").database == "wakes")
        #expect(try PostgresAddress("postgresql://localhost").database.isEmpty)
    }

    @Test(
        "What is meant as an address is told from other stores",
        arguments: [
            ("postgresql://x", true), ("postgres://x", true), ("sqlite", false), ("host=x", false), ("", false),
        ]
    )
    func meant(text: String, isAddress: Bool) {
        #expect(PostgresAddress.isAddress(text) == isAddress)
    }
}
