import Engine
import Gateway
import HTTPTransport
import ServiceManager
import Testing
import Wire

@Suite("The address of a database")
struct PostgresAddressTests {
    @Test(
        "An address names its servers, and only servers on this machine need not prove their identity",
        arguments: [
            ("postgresql:///wakegate", "", true), ("postgres://", "", true), ("postgresql://:5433/w?host=", "", true),
            ("postgresql://localhost/w", "host=localhost", true),
            ("postgresql://127.1.2.3:05432/w", "host=127.1.2.3 port=05432", true),
            ("postgresql://[::1]:1,localhost:2/w", "host=::1 port=1, host=localhost port=2", true),
            ("postgresql://%2Frun%2Fpostgresql/w", "host=/run/postgresql", true),
            ("postgresql:///w?host=/run/postgresql&port=5433", "host=/run/postgresql port=5433", true),
            ("postgresql://me@db1:5432,db2/w", "host=db1 port=5432, host=db2", false),
            ("postgresql://a,b/w?port=7", "host=a port=7, host=b port=7", false),
            ("postgresql://db1/w?user=me%40x&", "host=db1", false),
            ("postgresql://10.0.0.1/w?sslrootcert=/a@b", "host=10.0.0.1", false),
            ("postgresql://localhost,db2/w", "host=localhost, host=db2", false),
            ("postgresql://localhost/w?hostaddr=10.0.0.1", "host=localhost hostaddr=10.0.0.1", false),
            ("postgresql://db1/w?hostaddr=127.0.0.1", "host=db1 hostaddr=127.0.0.1", false),
            ("postgresql:///w?hostaddr=::1", "hostaddr=::1", true),
            ("postgresql://db1:1/w?host=/run&port=2", "host=/run port=2", false),
            ("postgresql://127.0.0.1.example.com/w", "host=127.0.0.1.example.com", false),
            ("postgresql://128.0.0.1/w", "host=128.0.0.1", false), ("postgresql:///?service=wakegate", "", false),
        ]
    )
    func hosts(text: String, hosts: String, isLocal: Bool) throws {
        let address = try PostgresAddress(text)
        #expect(address.text == text)
        let found = address.hosts.map { host in
            let parts = [("host", host.name), ("hostaddr", host.address), ("port", host.port)]
            return parts.filter { !$0.1.isEmpty }.map { "\($0.0)=\($0.1)" }.joined(separator: " ")
        }
        #expect(found.joined(separator: ", ") == hosts)
        #expect(address.isLocal == isLocal)
        let mode = isLocal && !hosts.isEmpty ? nil : "verify-full"
        #expect(address.completed(allowsUnverifiedServers: false)["sslmode"] == mode)
    }

    @Test(
        "An address is shown with its user, servers and database",
        arguments: [
            ("postgresql://zora@127.0.0.1/wakes", "postgresql://zora@127.0.0.1:5432/wakes"),
            ("postgres://zora@localhost:6000/wakes?user=", "postgresql://localhost:6000/wakes"),
            ("postgresql://zora@/wakes?host=/run/x", "postgresql://zora@/run/x:5432/wakes"),
            ("postgresql://[::1]:1,localhost:2/w%20s", "postgresql://[::1]:1,localhost:2/w s"),
            ("postgresql:///w?hostaddr=127.0.0.1&dbname=x", "postgresql://127.0.0.1:5432/x"),
            (
                "postgresql://z%C3%B6%FF@localhost/w?target_session_attrs=read-write",
                "postgresql://z\u{F6}\u{FFFD}@localhost:5432/w?target_session_attrs=read-write"
            ),
            ("postgresql://?service=w", "service w: postgresql:///"),
            ("postgresql://localhost", "postgresql://localhost:5432/"),
        ]
    )
    func shown(text: String, shown: String) throws {
        #expect(try PostgresAddress(text).description == shown)
    }

    @Test("Parameters are decoded, and the last value of a parameter applies")
    func values() throws {
        let address = try PostgresAddress(
            "postgresql://me@localhost/w?connect_timeout=2&user=%6De%26&options=-c%20a%3Db&connect_timeout=3&sslsni="
        )
        #expect(address["user"] == "me&" && address["options"] == "-c a=b" && address["connect_timeout"] == "3")
        #expect(address["dbname"] == "w" && address["sslsni"] == "" && address["sslmode"] == nil)
    }

    @Test(
        "A password is refused with the remedy, and no fault, change or error shows it",
        arguments: [
            "postgresql://me:hunter2@db1/w", "postgresql://me:hun@ter2@db1/w", "postgresql://me:hun/hunter2@db1/w",
            "postgresql://me@db1/w?password=hunter2", "postgresql://db1/w?sslpassword=hunter2&sslmode=disable",
            "postgres://:hunter2@/", "postgresql://db1/w?passfile=/p&password=hunter2",
            "postgres://me:hunter2@localhost:6000/w", "postgresql://me@/w?host=/run/x&password=hunter2",
            "postgresql://:hunter2@[::1]:1,localhost:2/w", "postgresql://me:hunter2%40x@localhost/w",
            "postgresql://me:hunter2%zz@localhost/w", "postgresql://me:hun#ter2@localhost:x/w",
        ]
    )
    func password(text: String) throws {
        #expect(throws: PostgresAddress.Fault.self) { try PostgresAddress(text) }
        for setting in ["store=\(text)", "store='\(text)'"] {
            let error = try #require(throws: ConfigurationError.self) { try load(set: [setting]) }
            #expect(error.faults.map(\.key) == ["store"])
            #expect(error.faults[0].problem == "holds a password")
            #expect(error.faults[0].remedy.contains("passfile=/FILE"))
            #expect(!"\(error) \(error.allFaults)".contains("hunter"))
            #expect(error.readable?.store == .sqlite)
        }
    }

    @Test(
        "An invalid address is refused without being shown: it may contain a password anywhere",
        arguments: [
            "postgresql:/me:hunter2@db1/w", "host=db1 password=hunter2", "Postgresql://hunter2", "hunter2!",
            "postgresql://hunter2 /w", "postgresql://db1:hunter2/w", "postgresql://db1/w?hunter2",
            "postgresql://db1/w?user=%zz&x=hunter2", "postgresql://[hunter2/w", "postgresql://db1/w?HUNTER2=1",
            "postgresql://hunter2]x/w?user=%0", "postgresql://db1/%0Ahunter2?port=%00",
            // What libpq would refuse, or read in another way.
            "postgresql://me:?hunter2@localhost/w", "postgresql://me@localhost/w?pasword=hunter2",
            "postgresql://hunter2:99999/w", "postgresql://a,b:1,c:2:3/hunter2", "postgresql://a,/hunter2",
            "postgresql://db1:0/hunter2", "postgresql://db1/hunter2%zz", "postgresql://hunter2%00@db1/w",
            "postgresql://[]/hunter2", "postgresql://db1?user=me@hunter2", "postgresql://db1/w?&user=hunter2",
            "postgresql://db1/w?user=hunter2&&port=1", "postgresql://db1/w?options=-ca=hunter2",
            "postgresql://me@db1@hunter2/w", "postgresql://db1/w@hunter2", "postgresql://a,b/hunter2?host=c",
            "postgresql://a,b/hunter2?hostaddr=127.0.0.1", "postgresql://a/hunter2?port=1,2",
            "postgresql://a/w?port=hunter2",
        ]
    )
    func noAddress(text: String) throws {
        #expect(throws: PostgresAddress.Fault.self) { try PostgresAddress(text) }
        let error = try #require(throws: ConfigurationError.self) { try load(set: ["store=\"\(text)\""]) }
        #expect(error.faults.map(\.key) == ["store"])
        #expect(!"\(error) \(error.allFaults)".lowercased().contains("hunter2"))
        #expect(!error.faults[0].remedy.isEmpty)
    }

    @Test(
        "A parameter that libpq does not know, or that leads to no server to write to, is refused by its name",
        arguments: [
            ("sslmod=verify-full", "sslmod"), ("target_session_attrs=standby", "target_session_attrs"),
            ("target_session_attrs=any", "target_session_attrs"), ("replication=database", "replication"),
        ]
    )
    func parameters(parameter: String, name: String) throws {
        let error = try #require(throws: PostgresAddress.Fault.self) {
            try PostgresAddress("postgresql://localhost/w?\(parameter)")
        }
        #expect(error.problem.contains(name))
    }

    @Test("Servers on other machines must prove their identity unless databaseInsecure is set")
    func proof() throws {
        let afar = "postgresql://db1,db2/w"
        let common = "target_session_attrs=read-write&fallback_application_name=wakegate"
        #expect(try load(set: ["store=\(afar)"]).database?.text == "\(afar)?sslmode=verify-full&\(common)")
        let free = try load(set: ["store=\(afar)", "databaseInsecure=true"])
        #expect(free.database?.text == "\(afar)?\(common)")
        let near = "postgresql://localhost/w"
        for (query, separator) in [("", "?"), ("?", ""), ("?user=me", "&"), ("?user=me&", ""), ("?passfile=/a?", "&")] {
            let text = try load(set: ["store=\(near)\(query)"]).database?.text
            #expect(text == "\(near)\(query)\(separator)\(common)")
        }
        let service = "postgresql:///?service=w&target_session_attrs=primary&application_name=x"
        #expect(try load(set: ["store=\(service)"]).database?.text == "\(service)&sslmode=verify-full")
        let verified = "\(service)&sslmode=verify-full"
        #expect(try load(set: ["store=\(verified)"]).database?.text == verified)
        // PGHOST may name a server if the address names none.
        let unnamed = try #require(try load(set: ["store=postgresql:///w"]).database?.text)
        #expect(unnamed.contains("sslmode=verify-full"))
        #expect(try load(set: ["store=sqlite"]).database == nil)
    }

    @Test(
        "A weaker sslmode is a fault only of an address on another machine",
        arguments: [
            ("postgresql://db1/w?sslmode=require", true), ("postgresql://db1/w?sslmode=disable", true),
            ("postgresql:///?service=w&sslmode=verify-ca", true), ("postgresql://db1/w?sslmode=verify-full", false),
            ("postgresql://127.0.0.1/w?sslmode=disable", false), ("postgresql:///w?sslmode=prefer", false),
            ("postgresql://db1/w", false), ("postgresql://128.0.0.1/w?sslmode=verify-ca", true),
            ("postgresql://db1,db2/w?sslmode=verify-full", false),
        ]
    )
    func weakMode(text: String, isFault: Bool) throws {
        let configuration = try load(set: ["store=\(text)"])
        #expect(configuration.databaseFaults().map(\.key) == (isFault ? ["store"] : []))
        #expect(configuration.faults().contains { $0.problem.contains("sslmode") } == isFault)
        #expect(try load(set: ["store=\(text)", "databaseInsecure=true"]).databaseFaults().isEmpty)
    }
}

@Suite("Sockets that the service manager opened")
struct InheritedSocketTests {
    private func socket(_ name: String, _ address: String) -> InheritedSocket {
        InheritedSocket(descriptor: 3, name: name, address: address)
    }

    @Test("A listener with passed sockets uses their addresses, and one without uses the configured address")
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

    @Test("A socket without a listener is refused with its name and the accepted names")
    func unknownPeer() throws {
        var configuration = GatewayConfiguration()
        let sockets = [self.socket("edge", "[::]:443"), self.socket("wakegate.socket", "[::]:80")]
        let error = #expect(throws: ConfigurationError.self) { try configuration.adopt(sockets) }
        #expect(
            error?.description == "the socket \"wakegate.socket\": passed by the service manager for [::]:80, is for "
                + "no listener; set FileDescriptorName= in its unit to one of: edge, plain, admin"
        )
        #expect(configuration.edge == GatewayConfiguration().edge)
    }

    @Test("A passed socket that others can reach must follow the rules of a configured address")
    func exposed() throws {
        var configuration = GatewayConfiguration()
        configuration.edge = .off
        try configuration.adopt([self.socket("admin", "[::]:9197")])
        #expect(configuration.faults().map(\.key) == ["admin"])
    }
}

@Suite("Networks that may reach a gateway without authentication")
struct CallerNetworkTests {
    private func client(_ four: UInt32) -> ClientNetwork {
        ClientNetwork(listener: 0, bits: 0xFFFF_FFFF_0000_0000 | UInt64(four))
    }

    private func client(v6: UInt64) -> ClientNetwork { ClientNetwork(listener: 0, bits: v6) }

    @Test("A network contains exactly the addresses with its first bits")
    func contains() throws {
        let docker = try #require(CallerNetwork("172.17.0.0/16"))
        #expect(docker.contains(self.client(0xAC11_0002)) && !docker.contains(self.client(0xAC12_0002)))
        let one = try #require(CallerNetwork("172.17.0.2"))
        #expect(one.contains(self.client(0xAC11_0002)) && !one.contains(self.client(0xAC11_0003)))
        let every = try #require(CallerNetwork("0.0.0.0/0"))
        #expect(every.contains(self.client(0)) && every.contains(self.client(.max)))
        #expect(!every.contains(self.client(v6: 0xFD00_0000_0000_0001)), "IPv6 is another matter")
        let six = try #require(CallerNetwork("fd00:1::/32"))
        #expect(six.contains(self.client(v6: 0xFD00_0001_8000_0000)))
        #expect(!six.contains(self.client(v6: 0xFD00_0002_0000_0000)) && !six.contains(self.client(0xFD00_0001)))
        #expect(try #require(CallerNetwork("::/0")).contains(self.client(v6: 1)))
        #expect(try #require(CallerNetwork("172.17.3.4/16")).contains(self.client(0xAC11_0000)))
    }

    @Test(
        "An invalid network is refused",
        arguments: [
            "", "a", "10", "10.1", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8/8", "fd00::1", "fd00::/65",
            "fe80::%lo/64", "localhost", "300.1.1.1",
        ]
    )
    func none(text: String) { #expect(CallerNetwork(text) == nil) }

    @Test("A caller is named by the address, or by its network of IPv6")
    func text() {
        #expect(self.client(0xAC11_0002).text == "172.17.0.2")
        #expect(self.client(v6: 0xFD00_0001_0000_0000).text == "fd00:1::/64")
        #expect(self.client(0x7F00_0001).isThisMachine && self.client(v6: 1).isThisMachine)
        #expect(!self.client(0x7F00_0002).isThisMachine)
    }
}

@Suite("The name of a gateway in a cluster")
struct MemberNameTests {
    @Test(
        "The name is the machine and the port of the edge, or the host that the edge is bound to",
        arguments: [
            ("[::]:2197", "gw1:2197"), ("0.0.0.0:2197", "gw1:2197"), ("127.0.0.1:41234", "gw1:41234"),
            ("[::1]:2197", "gw1:2197"), ("10.0.0.7:2197", "10.0.0.7:2197"), ("[fe80::1]:2197", "[fe80::1]:2197"),
            ("wake.example.com:443", "wake.example.com:443"), ("unix:/run/wakegate.sock", "gw1"),
        ]
    )
    func edge(address: String, name: String) {
        let addresses = BoundAddresses(edge: ListenSetting(address), admin: ListenSetting("127.0.0.1:1"), plain: .off)
        #expect(MemberName.name(of: addresses, machine: "gw1") == name)
    }

    @Test("Without an edge the name is the next listener's, and without a machine name the address")
    func others() {
        let plain = BoundAddresses(edge: .off, admin: ListenSetting("127.0.0.1:1"), plain: ListenSetting("[::1]:2"))
        #expect(MemberName.name(of: plain, machine: "gw1") == "gw1:2")
        #expect(MemberName.name(of: plain, machine: nil) == "[::1]:2")
    }
}
