import Policy
import Testing

@Suite("Launch kinds")
struct LaunchKindTests {
    @Test("Pushes and the kinds of tasks are all there is, each by its name on the wire")
    func names() {
        let names = LaunchKind.allCases.map(\.rawValue)
        #expect(names == ["push", "appRefresh", "processing", "continued", "urlSession"])
        #expect(LaunchKind.allCases.compactMap(\.task) == TaskKind.allCases)
        #expect(TaskKind.allCases.map { LaunchKind($0).rawValue } == TaskKind.allCases.map(\.rawValue))
        #expect(LaunchKind.allCases.map(\.lane) == [.short, .short, .processing, .continued, .short])
    }
}

@Suite("Patterns of identifiers", .timeLimit(.minutes(15)))
struct IdentifierPatternTests {
    @Test("A pattern matches itself, or longer identifiers after its dot")
    func patterns() {
        let all = IdentifierPattern("com.a.export.*")
        #expect(all.matches("com.a.export.photos"))
        #expect(all.matches("com.a.export.*"))
        for identifier in ["com.a.export", "com.a.export.", "com.a.exports", "com.b.export.x", ""] {
            #expect(!all.matches(identifier), "\(identifier)")
        }
        #expect(IdentifierPattern("com.a").matches("com.a"))
        #expect(!IdentifierPattern("com.a").matches("com.a.b"))
        #expect(!IdentifierPattern("com.a*").matches("com.ab"))
        #expect(!IdentifierPattern("K").matches("\u{212A}"))
    }

    @Test("The stem of a wildcard pattern ends in its dot")
    func beginnings() {
        let all = IdentifierPattern("com.a.*")
        #expect(all.stem == "com.a." && !all.isExact)
        for text in ["com.a", "com.a*"] {
            #expect(IdentifierPattern(text).stem == text && IdentifierPattern(text).isExact)
        }
    }

    @Test("An identifier has 1 to 255 characters of the alphabet")
    func identifiers() {
        let longest = String(repeating: "x", count: 255)
        for text in ["a", "Z", "0.9-_", "com.example.App-1_b", ".", longest] {
            #expect(IdentifierPattern.isIdentifier(text.utf8), "\(text)")
        }
        // The last character looks like K and equals K as a string.
        for text in ["", longest + "x", "a b", "a/b", "a.*", "ä", "a\n", "a\0", "\u{212A}"] {
            #expect(!IdentifierPattern.isIdentifier(text.utf8), "\(text)")
        }
    }

    @Test("A pattern is an identifier, or one and a dot and a star, of 255 characters in all")
    func wellFormed() {
        let beginning = String(repeating: "x", count: 253)
        for text in ["a", "a.*", "com.a.export.*", beginning + ".*"] {
            #expect(IdentifierPattern(text).isWellFormed, "\(text)")
        }
        for text in ["", "*", ".*", "a*", "a.*.b", "a.*.*", "a.**", "a b.*", beginning + "x.*"] {
            #expect(!IdentifierPattern(text).isWellFormed, "\(text)")
        }
    }
}
