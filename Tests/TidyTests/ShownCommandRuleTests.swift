import Testing

@Suite("The commands that pages show", .timeLimit(.minutes(15)))
struct ShownCommandRuleTests {
    @Test("Each is run by a test, or listed with the reason why none does")
    func pages() throws {
        let pages = try Repository.committedFiles().filter { $0.hasSuffix(".md") }
        #expect(pages.count > 50, "the tidy test must see the pages")
        let found = try ShownCommands.violations(in: pages, text: Repository.text)
        #expect(found.isEmpty, "\n\(found.map(\.description).joined(separator: "\n"))")
        #expect(ShownCommands.unrun.allSatisfy { $0.reason.count > 10 })
    }

    @Test("A command that no test runs is named, and so is a wrong entry of a list")
    func faults() {
        let texts = [
            "Good.md": "# Good\n```sh\n# first terminal\none\n```\n```text\n$x\n```\n",
            "Bare.md": "```console\n$ two \\\n    more\noutput\n# three\n```\n",
            "Hidden.md": "```\nwakegate dev\n```\n```text\n$ four\n```\n```swift\nwakegate dev\n```\n",
            "Stale.md": "nothing\n", "Test.swift": "shows(\"Good\")", "Other.swift": "shows(\"Bad\")",
        ]
        let found = ShownCommands.violations(
            in: ["Good.md", "Bare.md", "Hidden.md", "Stale.md"],
            runners: ["Good.md": ["Test.swift", "Other.swift"], "Stale.md": ["Test.swift"], "Gone.md": []],
            unrun: [
                ShownCommands.Unrun(page: "Bare.md", command: "three", reason: "a test"),
                ShownCommands.Unrun(page: "Stale.md", command: "five", reason: "a test"),
            ]
        ) { texts[$0] ?? "" }
        #expect(
            found.map(\.description) == [
                "Other.swift:1: it does not run what Good.md shows",
                "Bare.md:2: no test runs \"two \\\"; have one do so, or list it in ShownCommands",
                "Hidden.md:2: a command in a block that is neither sh nor console",
                "Hidden.md:5: a command in a block that is neither sh nor console",
                "Stale.md:1: it shows no command that a test could run",
                "Test.swift:1: it does not run what Stale.md shows", "Stale.md:1: it does not show \"five\"",
                "Gone.md:1: there is no such page; take it out of ShownCommands",
            ]
        )
    }
}
