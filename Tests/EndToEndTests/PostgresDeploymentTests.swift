import Foundation
import Testing
import WakeGateTestKit

@Suite("The files of deploy/postgresql", .timeLimit(.minutes(15)))
struct PostgresDeploymentTests {
    /// Expects that the server read every line of the settings and of the access rules without a fault.
    private func checkSettings(_ scene: DatabaseScene) throws {
        let read = "SELECT count(*) FROM pg_file_settings WHERE sourcefile LIKE '%/wakegate.conf'"
        let lines = try DatabaseScene.text("wakegate.conf").split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(lines.count > 40)
        #expect(try scene.server.query(read) == "\(lines.count)")
        #expect(try scene.server.query("SELECT * FROM pg_file_settings WHERE error IS NOT NULL") == "")
        #expect(try scene.server.query("SELECT * FROM pg_hba_file_rules WHERE error IS NOT NULL") == "")
        #expect(try scene.server.query("SELECT count(*) FROM pg_hba_file_rules") == "7")
        #expect(try scene.server.query("SELECT error, map_name FROM pg_ident_file_mappings") == "|nodes\n|nodes")
        #expect(try scene.server.query("SHOW synchronous_commit") == "on")
        #expect(try scene.server.query("SHOW max_wal_size") == "32GB")
    }

    @Test("A server takes the files; a gateway with its role's certificate makes the tables and may do nothing else")
    func roles() throws {
        let scene = try DatabaseScene()
        try self.checkSettings(scene)
        let made = try scene.run("roles.sql")
        #expect(made.status == 0, "\(made.errors)")
        try self.checkConfiguration(scene)
        let first = try scene.gateway()
        let granted = try scene.run("grants.sql", database: "wakegate")
        #expect(granted.status == 0, "\(granted.errors)")
        // Upgrades run the script again.
        #expect(try scene.run("grants.sql", database: "wakegate").status == 0)
        let second = try scene.gateway()
        let token = String(repeating: "ab", count: 32)
        #expect(try first.push(token, topic: "com.example.app").status == 200)
        try second.eventually("the push, in the other gateway's answer") {
            try second.stats().integer("pushes", "accepted") == 1
        }
        try self.checkRights(scene)
    }

    private func checkRights(_ scene: DatabaseScene) throws {
        let attributes = "rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls"
        #expect(
            try scene.server.query("SELECT bool_or(\(attributes)) FROM pg_roles WHERE rolname ~ '^wakegate'") == "f"
        )
        let create = "SELECT has_database_privilege('wakegate', 'wakegate', 'CREATE')"
        #expect(try scene.server.query(create) == "f")
        let owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'wakegate'"
        #expect(try scene.server.query(owners, database: "wakegate") == "wakegate")

        let gateways = try scene.query("SELECT count(*) FROM wakegate.gateway WHERE alive", as: "wakegate_read")
        #expect(gateways.output == "2\n", "\(gateways.errors)")
        for sql in [
            "SELECT token FROM wakegate.device", "SELECT content FROM wakegate.value",
            "SELECT body FROM wakegate.event", "SELECT device FROM wakegate.due", "SELECT apns FROM wakegate.push",
            "SELECT body FROM wakegate.bundle",
        ] {
            #expect(try scene.query(sql, as: "wakegate_read").errors.contains("permission denied"), "\(sql)")
        }
        let change = try scene.query("UPDATE wakegate.gateway SET alive = false", as: "wakegate_read")
        #expect(change.errors.contains("read-only transaction"))
        #expect(try scene.query("CREATE TABLE public.t ()", as: "wakegate").errors.contains("permission denied"))

        // Connections without TLS, as another role, and to another database are refused.
        let plain = try scene.query("SELECT", as: "wakegate", to: scene.address("wakegate", mode: "disable"))
        #expect(plain.errors.contains("rejects connection"), "\(plain.errors)")
        let other = try scene.query("SELECT", as: "wakegate_read", to: scene.address("wakegate"))
        #expect(other.errors.contains("certificate authentication failed"), "\(other.errors)")
        let elsewhere = try scene.query(
            "SELECT",
            as: "wakegate",
            to: scene.address("wakegate", database: "postgres")
        )
        #expect(elsewhere.errors.contains("rejects connection"), "\(elsewhere.errors)")
    }

    @Test("Patroni's file agrees with wakegate.conf and pg_hba.conf")
    func patroni() throws {
        let script = """
            import sys, yaml
            folder = sys.argv[1] + "/"
            def lines(name):
                return [line.split() for line in open(folder + name) if line.strip() and line[0] != "#"]
            text = yaml.safe_load(open(folder + "patroni.yml"))
            said = text["bootstrap"]["dcs"]["postgresql"]["parameters"] | text["postgresql"]["parameters"]
            named = [line for line in open(folder + "wakegate.conf") if " = " in line[:60]]
            words = [line.split("#")[0].split(" = ", 1) for line in named]
            conf = {w[0]: w[1].strip().strip("'") for w in words if w[0][0] != "#"}
            # Patroni's own, and what only Patroni needs to be told.
            for name in ("listen_addresses", "synchronous_standby_names"): del conf[name]
            del said["unix_socket_directories"]
            said = {k: str(v) for k, v in said.items()}
            assert said == conf, set(conf.items()) ^ set(said.items())
            for name in ("pg_hba", "pg_ident"):
                assert [line.split() for line in text["postgresql"][name]] == lines(name + ".conf"), name
            dcs = text["bootstrap"]["dcs"]
            assert dcs["synchronous_mode"] is True and dcs["synchronous_mode_strict"] is True
            assert dcs["loop_wait"] + 2 * dcs["retry_timeout"] <= dcs["ttl"]
            sys.stdout.write("the same")
            """
        let ended = try ChildProcess.run(RunningGateway.python, ["-c", script, DatabaseScene.files.path])
        #expect(ended.output == "the same", "\(ended.errors)")
    }

    @Test("The files of the environment are as systemd and shells read them, each for the same node")
    func environments() throws {
        for (file, names) in [("etcd.conf", 17), ("patroni_env.conf", 3)] {
            let lines = try DatabaseScene.text(file).split(separator: "\n").filter { !$0.hasPrefix("#") }
            #expect(lines.count == names && lines.allSatisfy { $0.wholeMatch(of: #/[A-Z_]+=\S+/#) != nil }, "\(file)")
            #expect(lines.contains { $0.hasSuffix("_NAME=db1") })
        }
    }

    @Test("The systemd drop-in is valid together with the gateway's unit")
    func unit() throws {
        let folder = try TemporaryFolder()
        let places = folder.url.appendingPathComponent("wakegate.service.d")
        try FileManager.default.createDirectory(at: places, withIntermediateDirectories: true)
        let text = try Checkout.text("deploy/systemd/wakegate.service")
        let file = folder.url.appendingPathComponent("wakegate.service")
        try Data(text.replacing("/usr/bin/wakegate", with: RunningGateway.program).utf8).write(to: file)
        try FileManager.default.copyItem(
            at: DatabaseScene.files.appendingPathComponent("wakegate-database.conf"),
            to: places.appendingPathComponent("database.conf")
        )
        let ended = try ChildProcess.run("systemd-analyze", ["verify", "--man=no", file.path])
        #expect(ended.status == 0 && ended.output + ended.errors == "", "\(ended.output) \(ended.errors)")
    }

    /// Expects that the gateway's configuration is valid for the test's certificates and database.
    private func checkConfiguration(_ scene: DatabaseScene) throws {
        let keys = scene.folder.appendingPathComponent("keys")
        try FileManager.default.createDirectory(at: keys, withIntermediateDirectories: false)
        let tls = scene.folder.appendingPathComponent("tls").path
        let text = try DatabaseScene.text("wakegate.json5")
            .replacing("/etc/ssl/certs/wakegate.pem", with: "\(tls)/127.0.0.1.pem")
            .replacing("/etc/ssl/private/wakegate.key", with: "\(tls)/127.0.0.1.key")
            .replacing("/etc/wakegate/keys", with: keys.path)
            .replacing("db1,db2,db3", with: "127.0.0.1:\(scene.server.port)")
            .replacing("read-write", with: "read-write&sslmode=verify-full")
        let file = scene.folder.appendingPathComponent("wakegate.json5")
        try Data(text.utf8).write(to: file)
        let words =
            scene.environment("wakegate") + [
                RunningGateway.program, "serve", "--config", file.path, "--check", "--edge", "127.0.0.1:0",
            ]
        let ended = try ChildProcess.run(words[0], Array(words.dropFirst()))
        #expect(ended.status == 0 && ended.errors.contains("the configuration is good"), "\(ended.errors)")
    }
}
