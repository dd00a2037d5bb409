import Foundation
import Testing

@Suite("The articles and interfaces of the SDK")
struct SDKArticleTests {
    /// A public module and its articles. For each article, a file contains its code blocks, which are compiled with the
    /// tests.
    struct Module: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let articles: [String]
        let publicDeclarationsMin: Int

        static let all = [
            Module(testDescription: "BackgroundTransfers", articles: ["TransferringFiles"], publicDeclarationsMin: 100),
            Module(
                testDescription: "WakeWorker",
                articles: ["HandlingWakes", "ComingFromIOS"],
                publicDeclarationsMin: 60
            ),
            Module(testDescription: "WakeWorkerTesting", articles: [], publicDeclarationsMin: 20),
        ]
    }

    private static func lines(_ path: String) throws -> [String] {
        try Repository.text(of: path).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// Returns the lines of each block, between the line that begins it and the next one that ends it.
    private static func blocks(_ lines: [String], from begins: (String) -> Bool, to end: String) -> [[String]] {
        var blocks: [[String]] = []
        var block: [String]?
        for line in lines {
            if line == end, let found = block {
                blocks.append(found)
                block = nil
            } else if block != nil {
                block?.append(line)
            } else if begins(line) {
                block = []
            }
        }
        return blocks
    }

    @Test("Every block of Swift in an article is one that compiles, in the same order", arguments: Module.all)
    func snippets(module: Module) throws {
        let name = module.testDescription
        for article in module.articles {
            let source = try Self.lines("Tests/SDK/\(name)Tests/Snippets/\(article).swift")
            let text = try Self.lines("Sources/SDK/\(name)/\(name).docc/\(article).md")
            let compiled = Self.blocks(source, from: { $0.hasPrefix("// snippet: ") }, to: "// end")
            let shown = Self.blocks(text, from: { $0 == "```swift" }, to: "```")
            #expect(shown.count >= 6)
            #expect(shown == compiled)
        }
    }

    @Test(
        "Every public declaration is documented, and each throwing function says what it throws",
        arguments: Module.all
    )
    func documented(module: Module) throws {
        let files = try Repository.sources().filter { $0.path.hasPrefix("Sources/SDK/\(module.testDescription)/") }
        var declarations = 0
        for file in files {
            let lines = file.lines
            for (index, line) in lines.enumerated() where line.drop(while: { $0 == " " }).hasPrefix("public ") {
                if line.hasPrefix("public import ") { continue }
                declarations += 1
                var above = index - 1
                if lines[above].trimmingCharacters(in: .whitespaces) == ")" {
                    // An attribute with several lines.
                    while above > 0, !lines[above].contains("@available(") { above -= 1 }
                }
                while above >= 0, lines[above].drop(while: { $0 == " " }).hasPrefix("@") { above -= 1 }
                let place = "\(file.path):\(index + 1)"
                #expect(lines[above].contains("///"), "\(place) is not documented")
                var comment = ""
                while above >= 0, lines[above].contains("///") {
                    comment += lines[above]
                    above -= 1
                }
                var head = index
                while head < lines.count - 1, !lines[head].hasSuffix("{") { head += 1 }
                guard lines[index].contains("func ") || lines[index].contains("init(") else { continue }
                let signature = lines[index...head].joined(separator: " ")
                let signatureThrows = signature.contains(") throws") || signature.contains("async throws(")
                if signatureThrows { #expect(comment.contains("- Throws:"), "\(place) does not say what it throws") }
            }
        }
        #expect(declarations > module.publicDeclarationsMin)
    }
}
