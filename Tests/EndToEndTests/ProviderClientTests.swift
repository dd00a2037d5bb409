import Foundation
import Glibc
import Testing

@Suite("Real clients accept the gateway as APNs", .serialized, .timeLimit(.minutes(15)))
struct ProviderClientTests {
    /// The topic of the certificates that `wakegate dev` makes.
    private let topic = "com.example.app"
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
        "A provider token of two hours ago is refused, and the client says why",
        // The other two clients cannot send an old token.
        arguments: ProviderClient.withToken.filter { !["kalyke", "java"].contains($0.testDescription) }
    )
    func expired(client: ProviderClient) throws {
        let folder = try RestartFolder()
        let gateway = try self.start(folder, asking: Self.forToken)
        let settings = ProviderClient.settings(gateway, topic: self.topic, age: 7200, scenes: ["one"])
        let ended = try client.start(settings).finish()
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.contains(#""403 ExpiredProviderToken""#), "\(ended.output)")
    }

    /// Plays all scenes, the last of them across a restart of the gateway.
    private func play(_ client: ProviderClient, hasToken: Bool) throws {
        let folder = try RestartFolder()
        let gateway = try self.start(folder, asking: hasToken ? Self.forToken : Self.forCertificate)
        let device = try gateway.edge("/v1/topics/\(self.topic)/devices", "-d", #"{"token":"\#(self.unregistered)"}"#)
        #expect(device.status == 201)
        let earliest = Int64(Date(timeIntervalSinceNow: 0).timeIntervalSince1970 * 1000)
        #expect(try gateway.edge("/v1/devices/\(self.unregistered)", "-X", "DELETE").status == 204)
        let scenes = ["one", "unregistered", "malformed", "thousand", "restart"]
        let settings = ProviderClient.settings(
            gateway,
            topic: self.topic,
            hasToken: hasToken,
            unregistered: self.unregistered,
            scenes: scenes
        )
        let running = try client.start(settings)
        func scene(_ name: String) throws -> ProviderClient.Scene {
            let line = try #require(try running.line(within: 300), "no \(name): \(running.errors)")
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

        let (last, taken) = try self.restart(gateway, folder, hasToken: hasToken, running, scene)
        let ended = try running.finish()
        #expect(ended.status == 0, "\(ended.errors)")

        // Pushes accepted just before the end of the first gateway may have been repeated, so the count may be higher.
        let stats = try last.stats()
        #expect(try #require(stats.integer("pushes", "accepted")) >= 1001 + taken)
        #expect(stats.integer("pushes", "rejected", "Unregistered") == 1)
        #expect(stats.integer("pushes", "rejected", "BadDeviceToken") == 1)
    }

    /// The settings of a gateway that treats providers with tokens like APNs: one stream until the first valid token.
    private static let forToken = ["--set", "providerKeys=keys"]
    private static let forCertificate = ["--set", "tls.clientCA=.wakegate/ca.pem"]

    /// Starts a gateway that requires providers to authenticate. It knows the key of the clients if it requires tokens.
    private func start(_ folder: RestartFolder, asking settings: [String]) throws -> RunningGateway {
        let gateway: RunningGateway
        if settings == Self.forToken {
            let asking = try AskingGateway(in: folder)
            try asking.useKey("KEY1234567", topic: self.topic)
            gateway = asking.gateway
        } else {
            gateway = try folder.start(settings)
        }
        let device = String(repeating: "ac", count: 32)
        #expect(try gateway.push(device, topic: self.topic).reason == "MissingProviderToken")
        return gateway
    }

    /// Restarts the gateway while the client pushes. Returns the next gateway and the number of accepted pushes.
    private func restart(
        _ gateway: RunningGateway,
        _ folder: RestartFolder,
        hasToken: Bool,
        _ running: ChildProcess,
        _ scene: (String) throws -> ProviderClient.Scene
    ) throws -> (RunningGateway, Int) {
        #expect(try scene("before the restart").answers == ["200": 20])
        #expect(try gateway.process.end(SIGTERM).status == 0)
        let next = try folder.start(hasToken ? Self.forToken : Self.forCertificate, edge: gateway.edge)
        try running.endInput()
        let restart = try scene("restart")
        let taken = try #require(restart.answers["200"])
        #expect(restart.answers.count == 1)
        #expect(taken >= 20 && taken % 20 == 0)
        return (next, 20 + taken)
    }
}
