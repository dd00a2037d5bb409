import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("A configuration that is read again", .serialized, .timeLimit(.minutes(15)))
struct ReloadTests {
    private let topic = "com.example.reload"
    private let token = String(repeating: "4e10ad", count: 10) + "0000"
    private static let open = ["--set", "registration=open"]

    @Test("Reloads under pushes at full rate lose no push and no connection, and the new policy takes effect")
    func fullRate() throws {
        let gateway = try ServedGateway(Self.open)
        let (edge, authority) = (gateway.edge, gateway.certificateAuthority)
        let client = try FullRateClient(edge: edge, authority: authority, topic: self.topic, devices: 500)
        let before = try gateway.explain(String(repeating: "0", count: 64))
        #expect(before.integer("policyVersion") == 1)
        let pushes = try self.accepted(gateway)
        for round in 1...10 {
            try gateway.write(["policy": ["launchInterval": round], "log": ["level": "info"]])
            try gateway.hangUp()
        }
        let explained = try gateway.explain(String(repeating: "0", count: 64))
        #expect(explained.integer("policyVersion") == 11)
        let after = try self.accepted(gateway)
        #expect(after > pushes)
        try gateway.eventually("pushes after the last reload") { try self.accepted(gateway) > after + 1000 }
        try client.stop()
        let outcome = try client.outcome()
        #expect(Set(outcome.statuses.keys) == ["200"], "\(outcome.statuses)")
        #expect(!outcome.goaway && outcome.processed == 0)
    }

    private func accepted(_ gateway: ServedGateway) throws -> Int {
        try gateway.stats().integer("pushes", "accepted") ?? 0
    }

    @Test("With any fault nothing changes, and every fault is returned to the client and logged")
    func allOrNothing() throws {
        let gateway = try ServedGateway(Self.open)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        try gateway.write([
            "policy": ["launchInterval": -1, "dailyLaunches": 7], "polisy": 1, "providerKeys": "/nonexistent",
            "tls": ["certificate": "/dev/null", "key": "/dev/null"],
        ])
        let answer = try gateway.postReload()
        #expect(answer.status == 400 && answer.reason == "BadConfiguration")
        let keys = ["policy.launchInterval", "polisy", "tls.certificate", "providerKeys"]
        #expect(answer.keys("faults") == keys)
        let command = try gateway.reload()
        #expect(command.status == 1)
        #expect(command.errors.contains("the old configuration stays in effect"))
        for key in keys { #expect(command.errors.contains("\n  \(key): "), "\(command.errors)") }
        try gateway.hangUp("reloadRefused")
        let log = gateway.process.errors
        for key in keys { #expect(log.contains(" error configurationFault key=\(key) problem="), "\(key)") }
        #expect(try gateway.explain(self.token).integer("policyVersion") == 1)

        try gateway.write([
            "polisy": nil, "providerKeys": nil, "policy": ["dailyLaunches": 7],
            "tls": ["certificate": gateway.certificate, "key": gateway.key],
        ])
        #expect(try gateway.postReload().keys("changed") == ["policy.dailyLaunches"])
    }

    @Test("Settings that need a restart are named each time and block no others; the command line wins")
    func restart() throws {
        let gateway = try ServedGateway(Self.open + ["--set", "policy.dailyLaunches=50"])
        try gateway.write([
            "store": "memory", "drainTimeout": 2, "policy": ["dailyLaunches": 7],
            "limits": ["streamsPerConnectionMax": 10, "devicesMax": 1],
        ])
        for changed in [["drainTimeout", "limits.devicesMax"], []] {
            let answer = try gateway.postReload()
            #expect(Set(answer.keys("changed")) == Set(changed))
            #expect(answer.keys("needsRestart") == ["store", "limits.streamsPerConnectionMax"])
        }
        let shown = try gateway.reload()
        #expect(
            shown.output == """
                needs a restart: store: "sqlite" -> "memory"
                needs a restart: limits.streamsPerConnectionMax: 1000 -> 10
                launch policy: version 1

                """
        )
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let second = String(self.token.reversed())
        #expect(try gateway.push(second, topic: self.topic).reason == "TooManyRequests")
        try gateway.write(["store": nil, "drainTimeout": nil, "limits": nil])
        #expect(Set(try gateway.postReload().keys("changed")) == ["drainTimeout", "limits.devicesMax"])
        #expect(try gateway.push(second, topic: self.topic).status == 200)
        #expect(try gateway.reload().output == "nothing has changed\nlaunch policy: version 1\n")
    }

    @Test("New handshakes use the new certificate, and existing connections stay")
    func certificate() throws {
        let gateway = try ServedGateway(Self.open)
        let worker = try gateway.worker(self.topic)
        func serial() throws -> String {
            let shown = try ChildProcess.run("openssl", ["s_client", "-connect", gateway.edge, "-alpn", "h2"])
            return try ChildProcess.run("openssl", ["x509", "-noout", "-serial"], input: shown.output).output
        }
        let before = try serial()
        #expect(before.hasPrefix("serial="))
        try gateway.renewCertificate()
        #expect(try serial() == before)
        let answer = try gateway.postReload()
        #expect(answer.keys("changed") == ["tls.certificate"])
        #expect(try serial() != before)
        #expect(try gateway.postReload().keys("changed") == [])
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        #expect(try worker.next()?.name == "wake")
        #expect(try gateway.workerCount() == 1)
    }

    @Test(
        "A new folder of provider keys applies and is watched; starting to require keys needs a restart"
    )
    func providerKeys() throws {
        let keys = try TemporaryFolder()
        let folders = ["old", "new"].map { "\(keys.path)/\($0)" }
        for folder in folders {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        let gateway = try ServedGateway(Self.open, members: ["providerKeys": folders[0]])
        func add(_ keyID: String, to folder: String) throws {
            let options = ["--team", AskingGateway.team, "--key-id", keyID, "--keys", folder]
            let added = try ChildProcess.wakegate(["key", "add", gateway.providerKey] + options)
            try #require(added.status == 0, "\(added.errors)")
        }
        func status(_ keyID: String) throws -> Int {
            let proof = try AskingGateway.authorization(keyID, signedBy: gateway.providerKey)
            return try gateway.push(self.token, topic: self.topic, fields: ["authorization: \(proof)"]).status
        }
        try add("KEY0000001", to: folders[0])
        try add("KEY0000002", to: folders[1])
        try gateway.eventually("a push with the first key") { try status("KEY0000001") == 200 }
        #expect(try status("KEY0000002") == 403)
        #expect(try gateway.postReload(["providerKeys": folders[1]]).keys("changed") == ["providerKeys"])
        #expect(try status("KEY0000001") == 403)
        #expect(try status("KEY0000002") == 200)
        try add("KEY0000003", to: folders[1])
        try gateway.eventually("a push with a key that was added") { try status("KEY0000003") == 200 }
        try add("KEY0000004", to: folders[0])
        #expect(try status("KEY0000004") == 403)
        #expect(try gateway.postReload(["providerKeys": nil]).keys("needsRestart") == ["providerKeys"])
        #expect(try gateway.push(self.token, topic: self.topic).status == 403)
    }

    @Test("New client authorities apply from the next request; connections that are still trusted continue")
    func clientAuthorities() throws {
        let (old, new) = (try TestAuthority("Old"), try TestAuthority("New"))
        let subject = "/UID=\(self.topic)"
        let (oldProvider, newProvider) = (try old.issue(subject), try new.issue(subject))
        let worker = try new.issue("/OU=worker\(subject)")
        let folder = old.folder
        let both = folder.appendingPathComponent("both.pem")
        try [old, new].map { try Data(contentsOf: URL(fileURLWithPath: $0.certificate)) }.reduce(Data(), +).write(
            to: both
        )
        let gateway = try ServedGateway(Self.open, members: ["tls": ["clientCA": old.certificate]])
        // A client that is not trusted receives no answer.
        func push(_ certificate: String) -> Int? {
            try? gateway.push(self.token, topic: self.topic, certificate: certificate).status
        }
        func reload(_ authorities: String) throws {
            let answer = try gateway.postReload(["tls": gateway.tls(["clientCA": authorities])])
            #expect(answer.status == 200 && answer.keys("changed") == ["tls.clientCA"], "\(answer.body)")
        }
        func hears(_ connection: ChildProcess, _ lines: String...) throws {
            for line in lines { #expect(try connection.line() == line) }
        }
        let goodbye = "goaway 0 1 {\"reason\":\"BadCertificate\"}"
        #expect(push(oldProvider) == 200)
        #expect(push(newProvider) == nil)
        let first = try self.connection(gateway, oldProvider)
        try hears(first, "settings", "answer 200")

        try reload(both.path)
        #expect(push(oldProvider) == 200)
        #expect(push(newProvider) == 200)
        let second = try self.connection(gateway, newProvider)
        try hears(second, "settings", "answer 200")
        let stream = try gateway.worker(self.topic, certificate: worker)
        #expect(try stream.next()?.name == "wake")
        #expect(first.isRunning)

        try reload(new.certificate)
        try hears(first, goodbye)
        #expect(push(oldProvider) == nil)
        #expect(push(newProvider) == 200)
        #expect(try gateway.workerCount() == 1 && second.isRunning)
        // The stream was open all along and receives the next event.
        try reload(old.certificate)
        try hears(second, goodbye)
        while try stream.next() != nil {}
        #expect(push(oldProvider) == 200)
    }

    /// Returns the output of a connection with a client certificate that pushes at once, until it is closed.
    private func connection(_ gateway: ServedGateway, _ certificate: String) throws -> ChildProcess {
        let options = [gateway.edge, gateway.certificateAuthority, certificate, "/3/device/\(self.token)"]
        return try ChildProcess(client: "goaway.py", options)
    }

    @Test("What-if replays under the current policy of the device's topic after a reload")
    func whatIf() throws {
        let gateway = try ServedGateway(Self.open, members: ["policy": ["launchInterval": 3600]])
        let worker = try gateway.worker(self.topic)
        func launch() throws {
            let wake = try #require(try worker.next()?.id)
            let result = #"{"result":"newData"}"#
            #expect(try gateway.ask(.edge, "POST", "/v1/wakes/\(wake)", body: result).status == 204)
        }
        func ask(_ policy: String) throws -> Answer {
            let body = #"{"policy":\#(policy)}"#
            return try gateway.ask(.admin, "POST", "/v1/devices/\(self.token)/what-if", body: body)
        }
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        try launch()
        #expect(try gateway.push(self.token, topic: self.topic).headers["wakegate-disposition"] == "scheduled")
        let before = try ask("{}")
        #expect(before.integer("policy", "launchInterval") == 3600, "\(before.body)")
        #expect(before.integer("whatIf", "launched") == 1 && before.integer("whatIf", "waiting") == 1)

        // The shortest interval, so that the replay also launches both.
        let own: [String: Any] = ["launchInterval": 0.001, "dailyLaunches": 7]
        try gateway.write(["policy": ["launchInterval": 1800], "topics": [self.topic: ["policy": own]]])
        #expect(try gateway.postReload().integer("policyVersion") == 2)
        try launch()
        let after = try ask("{}")
        #expect(after.value("policy", "launchInterval") as? Double == 0.001, "\(after.body)")
        #expect(after.integer("policy", "dailyLaunches") == 7)
        for outcome in ["recorded", "replayed", "whatIf"] { #expect(after.integer(outcome, "launched") == 2) }
        let other = try ask(#"{"launchInterval":3600}"#)
        #expect(other.value("policy", "launchInterval") as? Double == 0.001)
        #expect(other.integer("replayed", "launched") == 2 && other.integer("whatIf", "launched") == 1)

        #expect(try gateway.postReload(["topics": nil]).integer("policyVersion") == 3)
        let last = try ask("{}")
        #expect(last.integer("policy", "launchInterval") == 1800 && last.integer("whatIf", "launched") == 1)
    }

    @Test("The level and format of the log, and limits of loops and connections, change immediately")
    func settings() throws {
        let gateway = try ServedGateway(Self.open)
        try gateway.write(["log": ["level": "debug", "format": "json"], "limits": ["connectionsPerAddressMax": 1]])
        #expect(try gateway.postReload().status == 200)
        try gateway.eventually("a line of JSON") {
            gateway.process.errors.contains(#""event":"configurationChanged""#)
        }
        let worker = try gateway.worker(self.topic)
        _ = try? gateway.push(self.token, topic: self.topic)
        try gateway.eventually("a warning") {
            gateway.process.errors.contains(
                #""event":"limitMet","level":"warning","limit":"connectionsPerAddressMax""#
            )
        }
        worker.process.send(SIGKILL)
        #expect(try gateway.postReload(["limits": nil, "strictBackgroundPriority": true]).status == 200)
        let fields = ["apns-topic: \(self.topic)", "apns-push-type: background", "apns-priority: 10"]
        let path = "/3/device/\(self.token)"
        let push = try gateway.ask(.edge, "POST", path, body: RunningGateway.payload, fields: fields)
        #expect(push.status == 400 && push.reason == "BadPriority")
    }

    @Test("Named topics have their own metrics, and a credential has its new number of connections")
    func namesAndCredentials() throws {
        let gateway = try ServedGateway(Self.open)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        func isNamed() throws -> Bool {
            try gateway.ask(.admin, "GET", "/metrics").body.contains("{topic=\"\(self.topic)\"} 1\n")
        }
        let (token, _) = try gateway.issue("--role", "worker", "--topic", self.topic)
        let worker = try gateway.worker(self.topic, token: token)
        func another() throws -> String? {
            try gateway.ask(.edge, "GET", "/v1/topics/\(self.topic)/wakes?slots=0", token: token).reason
        }
        #expect(try !isNamed())
        #expect(try another() == "BadQuery")
        try gateway.write([
            "topics": [self.topic: ["policy": ["dailyLaunches": 9]]], "limits": ["connectionsPerCredentialMax": 1],
        ])
        #expect(try gateway.postReload().status == 200)
        #expect(try isNamed())
        #expect(try another() == "TooManyRequests")
        #expect(try gateway.postReload(["topics": nil, "limits": nil]).status == 200)
        #expect(try !isNamed())
        #expect(try another() == "BadQuery")
        #expect(try gateway.workerCount() == 1)
        withExtendedLifetime(worker) {}
    }

    @Test("Former files of authorities are not read again")
    func formerAuthorities() throws {
        let (old, new, third) = (try TestAuthority("Old"), try TestAuthority("New"), try TestAuthority("Third"))
        let subject = "/UID=\(self.topic)"
        let (oldProvider, thirdProvider) = (try old.issue(subject), try third.issue(subject))
        let gateway = try ServedGateway(Self.open, members: ["tls": ["clientCA": old.certificate]])
        func push(_ certificate: String) -> Int? {
            try? gateway.push(self.token, topic: self.topic, certificate: certificate).status
        }
        func append(_ authority: TestAuthority, to file: TestAuthority) throws {
            let texts = try [file, authority].map { try Data(contentsOf: URL(fileURLWithPath: $0.certificate)) }
            try (texts[0] + texts[1]).write(to: URL(fileURLWithPath: file.certificate))
        }
        #expect(push(oldProvider) == 200)
        try gateway.write(["tls": gateway.tls(["clientCA": new.certificate])])
        #expect(try gateway.postReload().keys("changed") == ["tls.clientCA"])
        #expect(push(oldProvider) == nil)
        // If the old file were still watched, its change would be noticed no later than the other one.
        try append(third, to: old)
        try append(third, to: new)
        try gateway.eventually("a push by an authority that was added") { push(thirdProvider) == 200 }
        #expect(push(oldProvider) == nil)
    }

    @Test("Limits of open connections and of workers' streams apply to existing ones")
    func openConnections() throws {
        let gateway = try ServedGateway(Self.open)
        let worker = try gateway.worker(self.topic)
        let idle = try ChildProcess(client: "goaway.py", [gateway.edge, gateway.certificateAuthority])
        #expect(try idle.line() == "settings")
        func metLimit() throws -> Int {
            try gateway.stats().integer("limits", "wakeBytesPerStreamMax") ?? 0
        }
        #expect(try gateway.postReload(["limits": ["idleSeconds": 1, "wakeBytesPerStreamMax": 4096]]).status == 200)
        #expect(try idle.line()?.hasPrefix("goaway 0 0") == true)
        #expect(try metLimit() == 0)
        let payload = #"{"aps":{"content-available":1},"x":"\#(String(repeating: "x", count: 3000))"}"#
        for device in [self.token, String(self.token.reversed())] {
            #expect(try gateway.push(device, topic: self.topic, payload: payload).status == 200)
        }
        #expect(try metLimit() > 0)
        #expect(try worker.next()?.name == "wake")
        #expect(try gateway.workerCount() == 1)
    }

    @Test("A shutdown uses the drainTimeout that was read last, and reads nothing itself")
    func shutdown() throws {
        let gateway = try ServedGateway(Self.open, members: ["drainTimeout": 1])
        let worker = try gateway.worker(self.topic)
        #expect(try gateway.push(self.token, topic: self.topic).status == 200)
        let wake = try #require(try worker.next()?.id)
        #expect(try gateway.postReload(["drainTimeout": 3600]).keys("changed") == ["drainTimeout"])
        gateway.process.send(SIGTERM)
        try gateway.eventually("the shutdown") {
            gateway.process.errors.contains(" draining drainTimeoutMilliseconds=3600000\n")
        }
        let answer = try gateway.postReload(["policy": ["launchInterval": 5]])
        #expect(answer.status == 503 && answer.reason == "Shutdown")
        gateway.process.send(SIGHUP)
        let result = #"{"result":"newData"}"#
        #expect(try gateway.ask(.edge, "POST", "/v1/wakes/\(wake)", body: result).status == 204)
        let ended = try gateway.process.finish()
        #expect(ended.status == 0)
        let events = ended.errors.split(separator: "\n").compactMap { $0.split(separator: " ").dropFirst(2).first }
        #expect(events == ["ready", "configurationChanged", "reloaded", "draining", "stopped"], "\(ended.errors)")
    }

    @Test("A topic's webhook is added, changed and removed while the gateway runs")
    func webhooks() throws {
        let rig = try WebhookRig()
        let (first, second) = (try rig.receiver(), try rig.receiver())
        let gateway = try ServedGateway(Self.open + ["--set", "policy.launchInterval=0.001"])
        func hook(_ receiver: WebhookReceiver) -> [String: Any] {
            [
                "url": "https://localhost:\(receiver.port)/wakes", "allowPrivate": true,
                "ca": rig.folder.state.appendingPathComponent("ca.pem").path,
            ]
        }
        func push(reply: String) throws {
            let payload = #"{"aps":{"content-available":1},"replies":["newData","\#(reply)"]}"#
            #expect(try gateway.push(self.token, topic: self.topic, payload: payload).status == 200)
        }
        for receiver in [first, second] {
            try gateway.write(["topics": [self.topic: ["webhook": hook(receiver)]]])
            #expect(try gateway.postReload().keys("changed").contains("topics.\(self.topic).webhook.url"))
            try gateway.eventually("one webhook") { try gateway.workerCount() == 1 }
            try push(reply: "newData")
            #expect(try receiver.next().path == "/wakes")
        }
        // A request whose result was posted elsewhere is cancelled together with its webhook.
        try push(reply: "silence")
        let wake = try #require(try second.next().id)
        let result = #"{"result":"newData"}"#
        #expect(try gateway.ask(.edge, "POST", "/v1/wakes/\(wake)", body: result).status == 204)
        #expect(try gateway.postReload(["topics": nil]).status == 200)
        #expect(try second.nextGivenUp() == wake)
        try gateway.eventually("no webhook") { try gateway.workerCount() == 0 }
        #expect(try !gateway.ask(.admin, "GET", "/v1/topics").body.contains("webhook"))
        #expect(try gateway.process.end().status == 0)
    }

    @Test(
        "A development gateway reloads the file of its command line, and SIGHUP ends it like a closed terminal"
    )
    func development() throws {
        let gateway = try RunningGateway()
        let ended = try gateway.wakegate("reload")
        #expect(ended.status == 0 && ended.output == "nothing has changed\nlaunch policy: version 1\n")
        #expect(try gateway.process.end(SIGHUP).status == 0)
    }
}
