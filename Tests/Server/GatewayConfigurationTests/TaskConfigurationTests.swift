import Engine
import Gateway
import Policy
import Testing
import Wire

@Suite("The configuration of background tasks", .timeLimit(.minutes(15)))
struct TaskConfigurationTests {
    private static func text(_ patterns: [IdentifierPattern]?) -> [String]? { patterns.map { $0.map(\.text) } }

    // MARK: Parameters

    @Test("Each parameter is set for all topics and for one, in the file and on the command line")
    func parameters() throws {
        for name in PolicyParameter.ofTasks {
            for configuration in [
                try load("{policy: {\(name): 17}, topics: {'a.b': {policy: {\(name): 18.0}}}}"),
                try load(set: ["topics.a.b.policy.\(name)=18", "policy.\(name)=17"]),
            ] {
                #expect(name.value(in: configuration.policy) == 17)
                #expect(name.value(in: configuration.policy(forTopic: "a.b")) == 18)
                #expect(name.value(in: configuration.policy(forTopic: "elsewhere")) == 17)
                #expect(name.value(in: configuration.engine.policy) == 17)
                #expect(configuration.engine.topicPolicies["a.b"].map { name.value(in: $0) } == 18)
            }
        }
    }

    // MARK: Permitted tasks

    @Test("A topic lists its permitted tasks; a topic with only such a list exists, with the common policy")
    func permitted() throws {
        let text = """
            {policy: {launchInterval: 60}, topics: {"com.a": {tasks: ["com.a.refresh", "com.a.export.*"]},
              "b": {policy: {maxAttempts: 2}, tasks: []}, "c": {}}}
            """
        let configuration = try load(text)
        #expect(Self.text(configuration.permittedTasks["com.a"]) == ["com.a.refresh", "com.a.export.*"])
        #expect(Self.text(configuration.permittedTasks["b"]) == [])
        #expect(configuration.permittedTasks["c"] == nil)
        #expect(configuration.topicPolicies.keys.sorted() == ["b", "c", "com.a"])
        #expect(configuration.policy(forTopic: "com.a") == configuration.policy)
        #expect(configuration.policy(forTopic: "b").maxAttempts == 2)
        let engine = configuration.engine.permittedTasks
        #expect(engine.permits("com.a.export.x", topic: "com.a") && !engine.permits("com.a.export.x", topic: "b"))
    }

    @Test("By default nothing is permitted, and in development everything; an explicit list wins")
    func defaults() throws {
        #expect(GatewayConfiguration().engine.permittedTasks == .none)
        var base = GatewayConfiguration()
        base.openForDevelopment()
        let settings = ["topics.com.a.tasks=['x']"]
        let loaded = try ConfigurationLoader.load(text: nil, name: "none", settings: settings, base: base)
        let permitted = loaded.permittedTasks
        #expect(permitted.permits("y", topic: "com.b"))
        #expect(permitted.permits("x", topic: "com.a") && !permitted.permits("y", topic: "com.a"))
        #expect(base.limits.submissionsPerCredentialMax == 0 && base.limits.progressPerCredentialMax == 0)
    }

    @Test("The command line may list tasks, too, and wins; null removes the list of the file")
    func settings() throws {
        let text = "{topics: {'com.a': {tasks: ['x']}, 'com.b': {tasks: ['y']}}}"
        let settings = ["topics.com.a.tasks=['z', 'z.*']", "topics.com.b.tasks=null", "topics.d.tasks=['x']"]
        let configuration = try load(text, set: settings)
        #expect(Self.text(configuration.permittedTasks["com.a"]) == ["z", "z.*"])
        #expect(configuration.permittedTasks["com.b"] == nil)
        #expect(configuration.topicPolicies.keys.sorted() == ["com.a", "com.b", "d"])
        // A topic may have the same name as the key.
        let named = ["topics.com.tasks={tasks:['x'],policy:{maxAttempts:2}}", "topics.my.tasks.tasks=['y']"]
        let other = try load(set: named + ["topics.com.tasks.policy.maxPenalty=1"])
        #expect(Self.text(other.permittedTasks["com.tasks"]) == ["x"])
        #expect(Self.text(other.permittedTasks["my.tasks"]) == ["y"])
        #expect(other.policy(forTopic: "com.tasks").maxAttempts == 2)
        #expect(other.policy(forTopic: "com.tasks").maxPenalty == 1)
    }

    private static let one =
        "write an identifier: an identifier has 1 to 255 characters of A-Z a-z 0-9 . - _; one that ends in .* "
        + "matches every longer identifier that begins with the text before the *"

    @Test(
        "An invalid list of identifiers is refused with the invalid element",
        arguments: [
            ("'a'", ["tasks: is \"a\"; write \(PermittedTasksKey.requirement)"]),
            ("{a: 1}", ["tasks: is an object; write \(PermittedTasksKey.requirement)"]),
            ("['a', 'b c', 5]", ["tasks[1]: is \"b c\"; \(Self.one)", "tasks[2]: is 5; \(Self.one)"]),
            ("['*', '.*']", ["tasks[0]: is \"*\"; \(Self.one)", "tasks[1]: is \".*\"; \(Self.one)"]),
            ("['']", ["tasks[0]: is \"\"; \(Self.one)"]),
            ("['a', 'a.*', 'a']", ["tasks[2]: is \"a\" again; write it once"]),
        ]
    )
    func malformed(value: String, messages: [String]) throws {
        let faults = refusal(of: try load("{topics: {'com.a': {tasks: \(value)}}}"))
        #expect(faults == messages.map { "topics.com.a.\($0)" })
    }

    @Test("A topic may list up to patternsPerTopicMax identifiers")
    func bound() throws {
        func text(_ count: Int) -> String {
            "{topics: {a: {tasks: [\((0..<count).map { "'t\($0)'" }.joined(separator: ","))]}}}"
        }
        let maximum = PermittedTasks.patternsPerTopicMax
        #expect(try load(text(maximum)).permittedTasks["a"]?.count == maximum)
        let message =
            "topics.a.tasks: has \(maximum + 1) identifiers; write at most \(maximum); one that ends in .* stands "
        #expect(refusal(of: try load(text(maximum + 1))) == [message + "for many"])
    }

    @Test("A reload applies the permitted tasks, and shows both lists")
    func permittedReload() throws {
        let none = GatewayConfiguration()
        let one = try load("{topics: {a: {tasks: ['x']}, b: {}}}")
        let two = try load("{topics: {a: {tasks: ['x', 'y.*']}, b: {}}}")
        let come = ConfigurationTransition(from: none, to: one)
        #expect(come.changed.map(\.key) == ["topics.a.tasks"] && come.needsRestart == [])
        #expect(come.changed[0].old == .null && come.changed[0].new == .array([.string("x")]))
        let more = ConfigurationTransition(from: come.next, to: two)
        #expect(more.changed.map(\.new) == [.array([.string("x"), .string("y.*")])])
        #expect(more.next.engine.permittedTasks.permits("y.z", topic: "a"))
        #expect(ConfigurationTransition(from: two, to: two).changed == [])
        #expect(ConfigurationTransition(from: two, to: none).changed.map(\.new) == [.null])
    }
}
