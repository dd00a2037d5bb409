import Foundation
import Testing
import WakeGateTestKit

@Suite("The article of the transfers")
struct ArticleTests {
    private static func lines(_ path: String) throws -> [String] {
        let text = try String(contentsOf: Checkout.root.appendingPathComponent(path), encoding: .utf8)
        return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// What stands between a line that begins a block and the next one that ends it.
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

    @Test("Every block of Swift in it is one that compiles, in the same order")
    func snippets() throws {
        let source = try Self.lines("Tests/SDK/BackgroundTransfersTests/Snippets/TransferringFiles.swift")
        let article = try Self.lines("Sources/SDK/BackgroundTransfers/BackgroundTransfers.docc/TransferringFiles.md")
        let compiled = Self.blocks(source, from: { $0.hasPrefix("// snippet: ") }, to: "// end")
        let shown = Self.blocks(article, from: { $0 == "```swift" }, to: "```")
        #expect(shown.count >= 6)
        #expect(shown == compiled)
    }

    @Test("Every public declaration is documented, and each throwing function says what it throws")
    func documented() throws {
        let folder = Checkout.root.appendingPathComponent("Sources/SDK/BackgroundTransfers")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects as? [URL]
        var declarations = 0
        for file in files ?? [] where file.pathExtension == "swift" {
            let lines = try String(contentsOf: file, encoding: .utf8).split(
                separator: "\n",
                omittingEmptySubsequences: false
            )
            for (index, line) in lines.enumerated() where line.drop(while: { $0 == " " }).hasPrefix("public ") {
                if line.hasPrefix("public import ") { continue }
                declarations += 1
                var above = index - 1
                while above >= 0, lines[above].drop(while: { $0 == " " }).hasPrefix("@") { above -= 1 }
                let place = "\(file.lastPathComponent):\(index + 1)"
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
        #expect(declarations > 100)
    }
}
