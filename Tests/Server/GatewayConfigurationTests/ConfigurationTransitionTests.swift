import Gateway
import Policy
import Testing
import Wire

@Suite("Differences between two configurations")
struct ConfigurationTransitionTests {
    /// Another value for each key, in the form of a file.
    private static let others: [String: String] = {
        var others = [
            "edge": #""127.0.0.1:1""#, "admin": #""127.0.0.1:2""#, "plain": #"["127.0.0.1:3"]"#, "insecure": "true",
            "state": #""/elsewhere""#, "store": #""postgresql:///other""#, "databaseConnections": "3",
            "databaseInsecure": "true", "registration": #""open""#,
            "strictBackgroundPriority": "true", "environment": #""production""#, "appleStreamLimit": "true",
            "drainTimeout": "2.5", "tls.certificate": #""/c.pem""#, "tls.key": #""/k.pem""#,
            "tls.clientCA": #""/a.pem""#, "tls.clientCRL": #""/r.pem""#, "providerKeys": #""/keys""#,
            "log.level": #""debug""#, "log.format": #""json""#, "unaskedWorkers": "true", "operatorTestPushes": "true",
            "clockJumpMax": "40000000",
        ]
        for parameter in PolicyParameter.allCases {
            others["policy.\(parameter.rawValue)"] = parameter == .criticalBattery ? "0.5" : "17"
        }
        for limit in GatewayLimit.all {
            let value = limit.defaultValue < limit.range.upperBound ? limit.defaultValue + 1 : limit.range.lowerBound
            others["limits.\(limit.name)"] = "\(value)"
        }
        return others
    }()

    @Test("A change of each key is found by its name with both values, and takes effect or waits for a restart")
    func keys() throws {
        let base = GatewayConfiguration()
        #expect(Set(Self.others.keys) == Set(GatewayConfiguration.keys.map(\.name)))
        for key in GatewayConfiguration.keys {
            let written = try #require(Self.others[key.name])
            let new = try load(set: ["\(key.name)=\(written)"])
            let first = ConfigurationTransition(from: base, to: new)
            let found = first.changed + first.needsRestart
            #expect(found.map(\.key) == [key.name])
            #expect(found.first?.old != found.first?.new)
            // Changes that need a restart are found again by each reload; the others are already in effect.
            let second = ConfigurationTransition(from: first.next, to: new)
            #expect(second.changed == [], "\(key.name)")
            #expect(second.needsRestart == first.needsRestart, "\(key.name)")
            // Reverting them is only a change for the settings in effect.
            let back = ConfigurationTransition(from: first.next, to: base)
            #expect((back.changed + back.needsRestart).map(\.key) == first.changed.map(\.key), "\(key.name)")
        }
    }

    @Test("Settings of sockets and of agreements with connected peers need a restart, and so does requiring proof")
    func restart() throws {
        func needs(_ name: String, from old: GatewayConfiguration = GatewayConfiguration()) throws -> Bool {
            let new = try load(set: ["\(name)=\(try #require(Self.others[name]))"])
            return !ConfigurationTransition(from: old, to: new).needsRestart.isEmpty
        }
        let waiting = try Self.others.keys.sorted().filter { try needs($0) }
        #expect(
            waiting == [
                "admin", "appleStreamLimit", "clockJumpMax", "databaseConnections", "databaseInsecure", "edge",
                "environment", "insecure",
                "limits.connectionWindowBytes", "limits.continuationFramesMax", "limits.eventStreamsMax",
                "limits.eventsHeldMax", "limits.frameBytesMax", "limits.headerListBytesMax", "limits.liveStreamsMax",
                "limits.readBytesPerTurn", "limits.streamWindowBytes", "limits.streamsPerConnectionMax", "plain",
                "providerKeys", "state", "store", "tls.clientCA", "unaskedWorkers",
            ]
        )
        // Changing from one folder or file to another does not begin or cease to require proof.
        #expect(try !needs("providerKeys", from: load(set: ["providerKeys=/old"])))
        #expect(try !needs("tls.clientCA", from: load(set: ["tls.clientCA=/old"])))
    }

    @Test("The certificate of an edge that a restart turns off or on changes with it")
    func edgeCertificate() throws {
        let pair = ["tls.certificate=/c.pem", "tls.key=/k.pem"]
        let on = try load(set: pair)
        let off = try load(set: ["edge=off"])
        for (old, new) in [(on, off), (off, on)] {
            let transition = ConfigurationTransition(from: old, to: new)
            #expect(transition.changed == [])
            #expect(transition.needsRestart.map(\.key) == ["edge", "tls.certificate", "tls.key"])
            #expect(transition.next.certificateFile == old.certificateFile)
            #expect(transition.next.privateKeyFile == old.privateKeyFile)
        }
        // The edge may go before its certificate.
        let kept = try load(set: ["edge=off"] + pair)
        #expect(ConfigurationTransition(from: on, to: kept).needsRestart.map(\.key) == ["edge"])
    }

    @Test("A change of a topic's effective parameters is found, whether the topic names them or not")
    func topics() throws {
        let old = try load(set: ["topics.a.b.policy.dailyLaunches=5"])
        let new = try load(set: ["policy.launchInterval=60", "topics.a.b.policy.dailyLaunches=6", "topics.c={}"])
        let changed = ConfigurationTransition(from: old, to: new).changed
        #expect(
            changed.map(\.key) == [
                "policy.launchInterval", "topics.a.b.policy.launchInterval", "topics.a.b.policy.dailyLaunches",
                "topics.c.policy.launchInterval",
            ]
        )
        #expect(changed[2].old == .number(.init(5)) && changed[2].new == .number(.init(6)))
    }

    @Test("An added, changed or removed webhook is found; only the destination of its URL is shown")
    func webhooks() throws {
        let none = GatewayConfiguration()
        let one = try load(set: ["topics.a.webhook={url: 'https://example.com/x?key=1', secretFile: '/s'}"])
        let other = try load(set: ["topics.a.webhook={url: 'https://example.com/x?key=2', secretFile: '/s'}"])
        let come = ConfigurationTransition(from: none, to: one).changed
        #expect(come.map(\.key) == ["topics.a.webhook.url", "topics.a.webhook.secretFile"])
        #expect(come[0].new == .string("https://example.com/x"))
        let changed = ConfigurationTransition(from: one, to: other).changed
        #expect(changed.map(\.key) == ["topics.a.webhook.url"])
        #expect(!"\(changed)".contains("key="))
        #expect(ConfigurationTransition(from: other, to: none).changed.map(\.key) == come.map(\.key))
        #expect(ConfigurationTransition(from: one, to: one).changed == [])
    }
}
