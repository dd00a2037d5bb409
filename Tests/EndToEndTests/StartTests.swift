import Foundation
import Glibc
import Testing

@Suite("Starting a gateway", .serialized, .timeLimit(.minutes(15)))
struct StartTests {
    @Test("A port in use ends the start with an error that names it", arguments: ["--edge", "--admin", "--plain"])
    func portInUse(option: String) throws {
        let gateway = try RunningGateway()
        let second = try ChildProcess.run(
            RunningGateway.program,
            ["dev", "--state", "second", "--edge", "127.0.0.1:0", "--admin", "127.0.0.1:0", option, gateway.admin],
            folder: gateway.folder
        )
        #expect(second.status == 1)
        #expect(second.errors.contains(gateway.admin), "\(second.errors)")
        #expect(second.output.isEmpty)
        #expect(try gateway.stats().status == 200)
    }

    @Test("serve --check takes a good configuration, and names every fault of a bad one")
    func configuration() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let gateway = try RunningGateway()
        let state = gateway.folder.appendingPathComponent(".wakegate").path
        let good = """
            {
              // Comments are allowed.
              edge: "127.0.0.1:0", admin: "127.0.0.1:0", store: "memory", state: "\(folder.path)/state",
              tls: { certificate: "\(state)/server.pem", key: "\(state)/server.key" },
              policy: { launchInterval: 600 },
            }
            """
        let taken = try self.check(good, folder)
        #expect(taken.status == 0, "\(taken.errors)")

        let bad: [(configuration: String, names: [String])] = [
            (#"{store: "memory", polisy: {}, policy: {launchInterval: -1}}"#, ["polisy", "policy.launchInterval"]),
            (#"{edge: "0.0.0.0:2197", store: "sqlite"}"#, ["edge", "tls.certificate"]),
            (#"{edge: "0.0.0.0:2197", polisy: {}}"#, ["polisy", "edge", "tls.certificate"]),
        ]
        for (configuration, names) in bad {
            let refused = try self.check(configuration, folder)
            #expect(refused.status == 78)
            for name in names { #expect(refused.errors.contains("  \(name): "), "\(refused.errors)") }
        }
    }

    @Test("Bad usage is 64 and names the nearest option")
    func usage() throws {
        let ended = try ChildProcess.run(RunningGateway.program, ["dev", "--admim", "127.0.0.1:0"])
        #expect(ended.status == 64)
        #expect(ended.errors.contains("--admin"))
    }

    @Test("A start that is refused leaves no socket file")
    func refusedStart() throws {
        let folder = try RestartFolder()
        let path = folder.folder.appendingPathComponent("plain").path
        try folder.end(try folder.start(), SIGTERM)
        // The listeners are there before the journal is read.
        try folder.changeJournal("PRAGMA user_version = 99")
        let ended = try folder.startInVain(["dev", "--plain", "unix:\(path)"])
        #expect(ended.status == 1 && ended.errors.contains("format 99"), "\(ended.errors)")
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("The state folder is for its owner alone, and one that others may enter is refused")
    func stateFolder() throws {
        let gateway = try RunningGateway()
        let state = gateway.folder.appendingPathComponent(".wakegate").path
        let mode = try FileManager.default.attributesOfItem(atPath: state)[.posixPermissions] as? Int
        #expect(mode == 0o700)
        let open = gateway.folder.appendingPathComponent("open")
        try FileManager.default.createDirectory(at: open, withIntermediateDirectories: false)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: open.path)
        let ended = try ChildProcess.run(
            RunningGateway.program,
            ["dev", "--state", open.path, "--edge", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
            folder: gateway.folder
        )
        #expect(ended.status != 0)
        #expect(ended.errors.contains(open.path), "\(ended.errors)")
    }

    /// Runs `wakegate serve --check` on a configuration that is written to `folder`.
    private func check(_ configuration: String, _ folder: URL) throws -> ChildProcess.Ended {
        let file = folder.appendingPathComponent("wakegate.json5")
        try Data(configuration.utf8).write(to: file)
        return try ChildProcess.run(RunningGateway.program, ["serve", "--config", file.path, "--check"])
    }
}
