import Foundation
import Glibc
import Testing

@Suite("Real clients take the gateway for APNs", .serialized, .timeLimit(.minutes(5)))
struct ProviderClientTests {
    private let topic = "com.example.provider"
    private let unregistered = String(repeating: "de", count: 32)

    @Test(
        "With a provider token it pushes once and a thousand times, is refused, and outlives a restart",
        arguments: ProviderClient.withToken
    )
    func token(client: ProviderClient) throws {
        try self.play(client, hasToken: true)
    }

    @Test(
        "With a client certificate it pushes once and a thousand times, is refused, and outlives a restart",
        arguments: ProviderClient.withCertificate
    )
    func certificate(client: ProviderClient) throws {
        try self.play(client, hasToken: false)
    }

    @Test(
        "Java's HttpClient pushes once and a thousand times, and is refused",
        .enabled(if: ProviderClient.hasJava, "there is no Java that runs a source file; Debian's takes 270 MB")
    )
    func java() throws {
        try self.play(.java, hasToken: true, outlivesRestart: false)
    }

    @Test(
        "A provider token of two hours ago is refused, and the client says why",
        arguments: ProviderClient.withToken.filter { $0.testDescription != "kalyke" }
    )
    func expired(client: ProviderClient) throws {
        let folder = try RestartFolder()
        let gateway = try self.start(folder, demandsToken: true)
        let settings = try self.settings(gateway, folder, hasToken: true, age: 7200, scenes: ["one"])
        let ended = try client.start(settings).finish()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.contains(#""403 ExpiredProviderToken""#), "\(ended.output)")
    }

    /// Plays every scene, the last of them across a restart of the gateway where the client has it.
    private func play(_ client: ProviderClient, hasToken: Bool, outlivesRestart: Bool = true) throws {
        let folder = try RestartFolder()
        let gateway = try self.start(folder, demandsToken: hasToken)
        let device = try gateway.edge("/v1/topics/\(self.topic)/devices", "-d", #"{"token":"\#(self.unregistered)"}"#)
        #expect(device.status == 201)
        let earliest = Int64(Date(timeIntervalSinceNow: 0).timeIntervalSince1970 * 1000)
        #expect(try gateway.edge("/v1/devices/\(self.unregistered)", "-X", "DELETE").status == 204)
        let scenes = ["one", "unregistered", "malformed", "thousand"] + (outlivesRestart ? ["restart"] : [])
        let settings = try self.settings(gateway, folder, hasToken: hasToken, scenes: scenes)
        let running = try client.start(settings)
        func scene(_ name: String) throws -> ProviderClient.Scene {
            let line = try #require(try running.line(within: 60), "no \(name): \(running.errors)")
            let scene = try JSONDecoder().decode(ProviderClient.Scene.self, from: Data(line.utf8))
            #expect(scene.scene == name, "\(line)")
            return scene
        }
        #expect(try scene("one").answers == ["200": 1])
        let gone = try scene("unregistered")
        #expect(gone.answers == ["410 Unregistered": 1])
        let latest = Int64(Date(timeIntervalSinceNow: 0).timeIntervalSince1970 * 1000)
        if client.tellsTimestamp { #expect((earliest...latest).contains(try #require(gone.timestamp))) }
        #expect(try scene("malformed").answers == ["400 BadDeviceToken": 1])
        #expect(try scene("thousand").answers == ["200": 1000])

        let (last, taken) = outlivesRestart ? try self.restart(gateway, folder, settings, scene) : (gateway, 0)
        let ended = try running.finish()
        #expect(ended.status == 0, "\(ended.errors)")

        // What was taken in the last moment of the first gateway may have been repeated, so there may be more.
        let stats = try last.stats()
        #expect(try #require(stats.integer("pushes", "accepted")) >= 1001 + taken)
        #expect(stats.integer("pushes", "rejected", "Unregistered") == 1)
        #expect(stats.integer("pushes", "rejected", "BadDeviceToken") == 1)
    }

    /// A gateway that is as APNs to those who come with tokens: one stream until the first good one.
    private static let providerKeys = ["--set", "providerKeys=keys", "--set", "appleStreamLimit=true"]

    /// A gateway that, when it demands provider tokens, knows the key of the clients.
    private func start(_ folder: RestartFolder, demandsToken: Bool) throws -> RunningGateway {
        guard demandsToken else { return try folder.start() }
        let keys = folder.folder.appendingPathComponent("keys")
        try FileManager.default.createDirectory(at: keys, withIntermediateDirectories: true)
        let gateway = try folder.start(Self.providerKeys)
        let named = ["--team", "TEAM123456", "--key-id", "KEY1234567"]
        let added = try ChildProcess.run(
            RunningGateway.program,
            ["key", "add", ".wakegate/provider.p8", "--keys", "keys"] + named,
            folder: folder.folder
        )
        #expect(added.status == 0, "\(added.errors)")
        let device = String(repeating: "ac", count: 32)
        let push = ["push", device, "--topic", self.topic, "--provider-key", ".wakegate/provider.p8"] + named
        try gateway.eventually("the key is known") {
            try ChildProcess.run(RunningGateway.program, push, folder: folder.folder).status == 0
        }
        #expect(try gateway.push(device, topic: self.topic).reason == "MissingProviderToken")
        return gateway
    }

    /// Restarts the gateway while the client pushes; gives the next gateway and how many pushes were taken.
    private func restart(
        _ gateway: RunningGateway,
        _ folder: RestartFolder,
        _ settings: ProviderClient.Settings,
        _ scene: (String) throws -> ProviderClient.Scene
    ) throws -> (RunningGateway, Int) {
        #expect(try scene("before the restart").answers == ["200": 20])
        #expect(try folder.end(gateway, SIGTERM).status == 0)
        let keys = settings.key == nil ? [] : Self.providerKeys
        let next = try folder.start(keys, edge: gateway.edge)
        try Data().write(to: URL(fileURLWithPath: settings.restarted))
        let restart = try scene("restart")
        let taken = try #require(restart.answers["200"])
        #expect(restart.answers.count == 1)
        #expect(taken >= 20 && taken % 20 == 0)
        return (next, 20 + taken)
    }

    private func settings(
        _ gateway: RunningGateway,
        _ folder: RestartFolder,
        hasToken: Bool,
        age: Int = 0,
        scenes: [String]
    ) throws -> ProviderClient.Settings {
        let colon = try #require(gateway.edge.lastIndex(of: ":"))
        return ProviderClient.Settings(
            host: String(gateway.edge[..<colon]),
            port: try #require(Int(gateway.edge[gateway.edge.index(after: colon)...])),
            ca: gateway.certificateAuthority,
            topic: self.topic,
            key: hasToken ? folder.state.appendingPathComponent("provider.p8").path : nil,
            keyID: "KEY1234567",
            team: "TEAM123456",
            certificate: try self.clientCertificate(folder),
            unregistered: self.unregistered,
            restarted: folder.folder.appendingPathComponent("restarted").path,
            age: age,
            scenes: scenes
        )
    }

    /// A file with a certificate for the topic, from the gateway's own authority, and its key.
    private func clientCertificate(_ folder: RestartFolder) throws -> String {
        let state = folder.state.path
        let made = try ChildProcess.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-CA",
                "\(state)/ca.pem", "-CAkey", "\(state)/ca.key", "-subj",
                "/CN=Apple Push Services: \(self.topic)/UID=\(self.topic)", "-keyout", "\(state)/client.key", "-out",
                "\(state)/client.crt",
            ]
        )
        guard made.status == 0 else { throw ChildProcess.Failure(description: made.errors) }
        let parts = try ["client.crt", "client.key"].map { name in
            try Data(contentsOf: folder.state.appendingPathComponent(name))
        }
        let file = folder.state.appendingPathComponent("client.pem")
        try (parts[0] + parts[1]).write(to: file)
        return file.path
    }
}
