import Engine
import Policy
import Testing
import WakeGateTestKit

@Suite("Which tasks are permitted", .timeLimit(.minutes(15)))
struct PermittedTasksTests {
    private func permitted(_ patterns: [String], _ base: PermittedTasks = .none) -> PermittedTasks {
        var permitted = base
        permitted["com.a"] = patterns.map { IdentifierPattern($0) }
        return permitted
    }

    @Test("The lookup agrees with matching each pattern")
    func patterns() {
        let texts = ["a", "a.b", "a.*", "a.b.*", "b..*", "b.*", "..*", "a-.*", "_"]
        var generator = SeededGenerator(seed: 7)
        var times = [true: 0, false: 0]
        for _ in 0..<5000 {
            let chosen = texts.filter { _ in generator.next() % 2 == 0 }
            let letters = Array("ab.")
            let length = 1 + Int(generator.next() % 5)
            let identifier = String((0..<length).map { _ in letters[Int(generator.next() % UInt64(letters.count))] })
            let expected = chosen.contains { IdentifierPattern($0).matches(identifier) }
            #expect(self.permitted(chosen).permits(identifier, topic: "com.a") == expected, "\(chosen) \(identifier)")
            times[expected, default: 0] += 1
        }
        #expect((times[true] ?? 0) > 500 && (times[false] ?? 0) > 500)
    }

    @Test("A worker is warned of the patterns that match no permitted identifier")
    func warnings() {
        let texts = ["a", "a.b", "a.*", "a.b.*", "b..*", "b.*", "..*", "a-.*", "_", "a.", "a.b.", "b.a.b"]
        let letters = ["a", "b", ".", "-", "_"]
        let identifiers = (0..<5).reduce(into: [""]) { words, _ in
            words += words.flatMap { word in letters.map { word + $0 } }
        }.filter { IdentifierPattern.isIdentifier($0.utf8) }
        let known = Dictionary(
            uniqueKeysWithValues: texts.map { text in
                let pattern = IdentifierPattern(text)
                return (text, Set(identifiers.filter { pattern.matches($0) }))
            }
        )
        var generator = SeededGenerator(seed: 9)
        var warned = 0
        for _ in 0..<500 {
            let chosen = texts.filter { _ in generator.next() % 4 == 0 }
            let warning = self.permitted(chosen).warning(
                topic: "com.a",
                tasks: texts.map { IdentifierPattern($0) },
                worker: "w"
            )
            let expected = texts.filter { text in
                chosen.allSatisfy { known[$0]?.isDisjoint(with: known[text] ?? []) ?? true }
            }
            #expect(warning?.tasks.map(\.text) ?? [] == expected, "\(chosen)")
            warned += expected.count
        }
        #expect(warned > 500)
        let (none, all) = (PermittedTasks.none, PermittedTasks.all)
        #expect(none.warning(topic: "com.a", tasks: [], worker: "") == nil)
        #expect(none.warning(topic: "com.a", tasks: [IdentifierPattern("a")], worker: "")?.problem == .notPermitted)
        let everything = all.warning(topic: "com.a", tasks: [IdentifierPattern("a")], worker: "")
        #expect(everything?.problem == .everythingPermitted)
    }

    @Test("Nothing is permitted, or everything, to a topic that names nothing")
    func defaults() {
        #expect(!PermittedTasks.none.permits("a", topic: "com.a"))
        #expect(PermittedTasks.all.permits("a", topic: "com.a"))
        for identifier in ["", "a b", "a.*", "\u{212A}"] {
            #expect(!PermittedTasks.all.permits(identifier, topic: "com.a"), "\(identifier)")
        }
        let named = self.permitted(["a"], .all)
        #expect(named.permits("a", topic: "com.a") && !named.permits("b", topic: "com.a"))
        #expect(named.permits("b", topic: "com.b"))
        #expect(!self.permitted([], .all).permits("a", topic: "com.a"))
        let below = self.permitted(["a.*"])
        #expect(below.permits("a.b", topic: "com.a") && !below.permits("a.b", topic: "com.b"))
        #expect(!below.permits("a.*", topic: "com.a") && !below.permits("a.b c", topic: "com.a"))
        #expect(EngineConfiguration().permittedTasks == .none)
    }

    @Test("A topic without its own list is treated like all others")
    func unnamed() {
        var permitted = self.permitted(["a"], .all)
        #expect(Array(permitted.listedTopics) == ["com.a"])
        #expect(permitted["com.a"] == [IdentifierPattern("a")])
        permitted["com.a"] = nil
        #expect(permitted == .all && permitted["com.a"] == nil)
    }

    @Test("The longest name is looked up among the maximum number of patterns")
    func bounds() {
        let dots = String(repeating: ".", count: IdentifierPattern.bytesMax)
        let many = (0..<PermittedTasks.patternsPerTopicMax).map { "a\($0).*" }
        let permitted = self.permitted(many)
        #expect(permitted.permits("a999.x", topic: "com.a"))
        #expect(!permitted.permits("a1000.x", topic: "com.a"))
        #expect(!permitted.permits(dots, topic: "com.a"))
    }
}
