import Foundation
import Gateway
import HTTPTransport
import Policy
import ServiceManager
import Testing
import Wire

@Suite("Reading a configuration")
struct ConfigurationLoaderTests {
    @Test("A file that is not UTF-8 is refused with the line at fault")
    func notUTF8() throws {
        let text = Data("{\n  m".utf8) + [0xF9] + Data("n: 1\n}".utf8)
        let error = #expect(throws: ConfigurationError.self) {
            try ConfigurationLoader.load(text: text, name: "test.json5")
        }
        #expect(
            error?.description == "test.json5: is not JSON5 (line 2 is not UTF-8); correct the syntax there"
        )
    }

    @Test("JSON5 is accepted: comments, bare keys, single quotes, trailing commas")
    func json5() throws {
        let configuration = try load(
            """
            // The edge.
            { edge: '127.0.0.1:0', admin: ["127.0.0.1:1", "[::1]:2"], plain: "off", /* all of it */
              state: "/tmp/s", store: "memory", registration: "open", strictBackgroundPriority: true,
              drainTimeout: 0.5, clockJumpMax: 4e7, insecure: false, providerKeys: "/keys",
              environment: "production", tls: { certificate: "c", key: "k", clientCA: null, clientCRL: "r" },
              policy: { launchInterval: 600, criticalBattery: .5, },
              topics: { "com.example.app": { policy: { launchInterval: 300 } }, "b": {} },
              limits: {}, log: { level: "debug", format: "json" } }
            """
        )
        #expect(configuration.edge == ListenSetting("127.0.0.1:0"))
        #expect(configuration.admin == ListenSetting(["127.0.0.1:1", "[::1]:2"]))
        #expect(configuration.plain == .off)
        #expect(configuration.stateFolder == "/tmp/s")
        #expect(configuration.store == .memory)
        #expect(configuration.registration == .open)
        #expect(configuration.strictBackgroundPriority)
        #expect(configuration.drainTimeoutMilliseconds == 500)
        #expect(configuration.clockJumpMaxMilliseconds == 40_000_000_000)
        #expect(configuration.certificateFile == "c")
        #expect(configuration.privateKeyFile == "k")
        #expect(configuration.clientCAFile == nil)
        #expect(configuration.clientCRLFile == "r")
        #expect(configuration.environment == .production)
        #expect(configuration.providerKeysFolder == "/keys")
        #expect(configuration.policy.launchInterval == 600_000)
        #expect(configuration.policy.criticalBattery == 0.5)
        #expect(configuration.policy(forTopic: "com.example.app").launchInterval == 300_000)
        #expect(configuration.policy(forTopic: "com.example.app").criticalBattery == 0.5)
        #expect(configuration.policy(forTopic: "elsewhere") == configuration.policy)
        #expect(configuration.topicPolicies.keys.sorted() == ["b", "com.example.app"])
        #expect(configuration.logLevel == .debug)
        #expect(configuration.logFormat == .json)
    }

    @Test("Every duration may have a unit, in the file and in --set")
    func durations() throws {
        let text = """
            { drainTimeout: "1m", policy: { launchInterval: "10m" }, limits: { idleSeconds: "2h" },
              topics: { a: { policy: { progressWindow: "1.5m" } } } }
            """
        let configuration = try load(text)
        #expect(configuration.drainTimeoutMilliseconds == 60_000)
        #expect(configuration.policy.launchInterval == 600_000)
        #expect(configuration.limits.transport.idleSeconds == 7200)
        #expect(configuration.policy(forTopic: "a").progressWindow == 90_000)
        let set = try load(set: ["policy.launchInterval=5m", "drainTimeout=90"])
        #expect(set.policy.launchInterval == 300_000)
        #expect(set.drainTimeoutMilliseconds == 90_000)
        #expect(throws: ConfigurationError.self) { try load("{policy: {maxAttempts: '3m'}}") }
    }

    @Test(
        "A malformed value is refused by name with the accepted ones, an unknown key with the nearest one",
        arguments: [
            ("{edge: 5}", "edge: is 5; write \(ListenSetting.requirement)"),
            ("{edge: \"2197\"}", "edge: is \"2197\"; write \(ListenSetting.requirement)"),
            ("{edge: \"::1:80\"}", "edge: is \"::1:80\"; write \(ListenSetting.requirement)"),
            ("{admin: \"a:65536\"}", "admin: is \"a:65536\"; write \(ListenSetting.requirement)"),
            ("{plain: [5]}", "plain: is a list; write \(ListenSetting.requirement)"),
            ("{plain: {}}", "plain: is an object; write \(ListenSetting.requirement)"),
            ("{insecure: 1}", "insecure: is 1; write true or false"),
            ("{state: \"\"}", "state: is \"\"; write a folder's path"),
            ("{store: \"redis\"}", "store: is \"redis\"; write \(stores)"),
            ("{store: 1}", "store: is 1; write \(stores)"),
            ("{databaseConnections: 0}", "databaseConnections: is 0; write a whole number from 1 to 100"),
            ("{databaseConnections: 101}", "databaseConnections: is 101; write a whole number from 1 to 100"),
            ("{databaseConnections: 2.5}", "databaseConnections: is 2.5; write a whole number from 1 to 100"),
            ("{databaseInsecure: 0}", "databaseInsecure: is 0; write true or false"),
            ("{registration: null}", "registration: is null; write \"explicit\" or \"open\""),
            ("{strictBackgroundPriority: \"yes\"}", "strictBackgroundPriority: is \"yes\"; write true or false"),
            ("{environment: \"sandbox\"}", "environment: is \"sandbox\"; write \(environments)"),
            ("{environment: 1}", "environment: is 1; write \(environments)"),
            ("{drainTimeout: -1}", "drainTimeout: is -1; write \(duration("0 to 3600"))"),
            ("{drainTimeout: Infinity}", "drainTimeout: is inf; write \(duration("0 to 3600"))"),
            ("{drainTimeout: NaN}", "drainTimeout: is nan; write \(duration("0 to 3600"))"),
            ("{clockJumpMax: 59}", "clockJumpMax: is 59; write \(duration("60 to 3155760000"))"),
            ("{tls: {key: 5}}", "tls.key: is 5; write a path, or null"),
            ("{tls: \"x\"}", "tls: is \"x\"; write an object: { ... }"),
            ("{providerKeys: []}", "providerKeys: is a list; write a path, or null"),
            ("{log: {level: \"loud\"}}", "log.level: is \"loud\"; write \(levels)"),
            ("{policy: {launchInterval: 0}}", "policy.launchInterval: is 0; write \(seconds), or such as \"10m\""),
            (
                "{policy: {executionWindow: \"half\"}}",
                "policy.executionWindow: is \"half\"; write \(seconds), or such as \"10m\""
            ),
            ("{policy: {immediateBurst: 0}}", "policy.immediateBurst: is 0; write \(count)"),
            ("{policy: {dailyLaunches: 1.5}}", "policy.dailyLaunches: is 1.5; write \(count)"),
            ("{policy: {criticalBattery: 1.1}}", "policy.criticalBattery: is 1.1; write a number from 0 to 1"),
            ("{topics: {a: {policy: {maxAttempts: 0}}}}", "topics.a.policy.maxAttempts: is 0; write \(count)"),
            ("{topics: {\"a b\": {}}}", "topics.a b: is not a topic; \(topicName)"),
            ("{topics: {\"com.example.*\": {}}}", "topics.com.example.*: is not a topic; \(topicName)"),
            ("{topics: {a: 5}}", "topics.a: is 5; \(topicRemedy)"),
            ("5", "test.json5: holds 5; write an object: { edge: \"127.0.0.1:2197\" }"),
            ("{egde: null}", "egde: is not a key; did you mean edge?"),
            ("{Edge: null}", "Edge: is not a key; did you mean edge?"),
            ("{drainTimeOut: 5}", "drainTimeOut: is not a key; did you mean drainTimeout?"),
            ("{launchInterval: 5}", "launchInterval: is not a key; did you mean policy.launchInterval?"),
            ("{certificate: \"x\"}", "certificate: is not a key; did you mean tls.certificate?"),
            (
                "{policy: {launchIntervall: 5}}",
                "policy.launchIntervall: is not a key; did you mean policy.launchInterval?"
            ),
            ("{polcy: {}}", "polcy: is not a key; did you mean policy?"),
            ("{topics: {a: {polcy: {}}}}", "topics.a.polcy: is not a key; did you mean topics.a.policy?"),
            (
                "{topics: {a: {policy: {maxAttempt: 1}}}}",
                "topics.a.policy.maxAttempt: is not a key; did you mean topics.a.policy.maxAttempts?"
            ),
            ("{topics: {a: {task: []}}}", "topics.a.task: is not a key; did you mean topics.a.tasks?"),
            ("{zzzzzzzzzz: 1}", "zzzzzzzzzz: is not a key; remove it; `wakegate serve --help keys` lists the keys"),
            ("{limits: {deviceMax: 1}}", "limits.deviceMax: is not a key; did you mean limits.devicesMax?"),
            ("{topicsMax: 1}", "topicsMax: is not a key; did you mean limits.topicsMax?"),
        ]
    )
    func malformed(text: String, message: String) {
        #expect(refusal(of: try load(text)) == [message])
    }

    private static func duration(_ range: String) -> String {
        "a number of seconds from \(range), or such as \"10m\""
    }
    private static let stores = "\"sqlite\", \"memory\", or \"postgresql://HOST,HOST/DATABASE\""
    private static let environments = "\"development\" or \"production\", or null"
    private static let levels = "\"debug\" or \"info\" or \"warning\" or \"error\""
    private static let seconds = PolicyParameter.launchInterval.requirement
    private static let count = PolicyParameter.dailyLaunches.requirement
    private static let topicName = "write letters, digits, '.', '_' and '-', such as com.example.app"
    private static let topicRemedy =
        "write { policy: { launchInterval: 300 } }, or set topics.TOPIC.policy.PARAMETER"

    @Test("All faults are found together, including those of --set")
    func allFaults() {
        let text =
            "{edge: 1, store: 2, policy: {launchInterval: -1, maxPenaltys: 1}, topics: {t: {policy: {maxAttempts: 0}}}}"
        let faults = refusal(of: try load(text, set: ["log.format=xml", "nonsense=1", "noValue"]))
        let keys = faults.map { String($0.prefix { $0 != ":" }) }
        #expect(
            keys == [
                "edge", "policy.launchInterval", "policy.maxPenaltys", "store", "log.format", "nonsense",
                "--set noValue", "topics.t.policy.maxAttempts",
            ]
        )
    }

    @Test("Text that is not JSON5 is refused with the place")
    func syntax() throws {
        #expect(
            refusal(of: try load("{ edge: \n oops }")) == [
                "test.json5: is not JSON5 (line 2, column 2: \"oops\" is not a value; write text in quotes); "
                    + "correct the syntax there"
            ]
        )
    }

    @Test("Only the first fault is reported for a text that cannot be read")
    func firstFaultAlone() throws {
        for text in ["{ edge: \n oops }", "[]", "{ admin: 'off', admin: 'off' }"] {
            let error = #expect(throws: ConfigurationError.self) { try load(text, set: ["store=xml"]) }
            #expect(error?.allFaults.count == 1, "\(text): \(error?.description ?? "")")
        }
    }

    @Test("The same key twice is a fault that names both places, in the file and in --set")
    func duplicates() {
        #expect(
            refusal(of: try load("{\n  edge: '127.0.0.1:0',\n  edge: '127.0.0.1:1',\n}")) == [
                "test.json5: has \"edge\" twice (line 2, column 3; line 3, column 3); leave one of the two"
            ]
        )
        #expect(
            refusal(of: try load(set: ["policy={launchInterval:1,launchInterval:2}"])) == [
                "--set policy: has \"launchInterval\" twice (line 1, column 2; line 1, column 19); "
                    + "leave one of the two"
            ]
        )
    }

    @Test("--set accepts any key, and overrides the file")
    func settings() throws {
        let configuration = try load(
            "{policy: {launchInterval: 900}, edge: null, topics: {\"a.b\": {policy: {maxAttempts: 7}}}}",
            set: [
                "policy.launchInterval=600", "topics.com.example.policy.app.policy.launchInterval=300",
                "edge=127.0.0.1:0", "plain=off", "admin=[\"127.0.0.1:1\"]", "store=memory", "state=123",
                "tls={key:'k'}", "insecure=true", "topics.a.b={policy:{maxPenalty:0}}",
            ]
        )
        #expect(configuration.policy.launchInterval == 600_000)
        #expect(configuration.policy(forTopic: "com.example.policy.app").launchInterval == 300_000)
        #expect(configuration.edge == ListenSetting("127.0.0.1:0"))
        #expect(configuration.plain.isOff)
        #expect(configuration.admin == ListenSetting(["127.0.0.1:1"]))
        #expect(configuration.store == .memory)
        #expect(configuration.stateFolder == "123")
        #expect(configuration.privateKeyFile == "k")
        #expect(configuration.allowsRemoteCleartext)
        // A topic starts from the general policy, wherever that was set.
        #expect(configuration.policy(forTopic: "a.b").launchInterval == 600_000)
        #expect(configuration.policy(forTopic: "a.b").maxAttempts == 7)
        #expect(configuration.policy(forTopic: "a.b").maxPenalty == 0)
    }

    @Test("A file that cannot be read is named")
    func missingFile() {
        #expect {
            _ = try ConfigurationLoader.load(file: "/nonexistent/wakegate.json5")
        } throws: { error in
            let message = "/nonexistent/wakegate.json5: cannot be read (no such file); "
            return "\(error)" == message + "name a readable file with --config"
        }
    }
}
