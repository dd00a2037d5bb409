import Foundation
import Testing

@Suite("The threat model names tests that are there", .timeLimit(.minutes(15)))
struct ThreatModelTests {
    @Test("Every threat of the article has a test of that name, with a rule in words")
    func tests() throws {
        let article = RunningGateway.root.appendingPathComponent("Sources/Server/Gateway/Gateway.docc/ThreatModel.md")
        let section = try #require(
            String(contentsOf: article, encoding: .utf8).components(separatedBy: "\n## What is tried").dropFirst()
                .first?
                .components(separatedBy: "\n## ").first
        )
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst()
        #expect(rows.count > 20)
        for row in rows {
            let cell = try #require(row.split(separator: "|").last { !$0.allSatisfy(\.isWhitespace) })
            let name = cell.trimmingCharacters(in: CharacterSet(charactersIn: " `"))
            let parts = try #require(name.wholeMatch(of: /(\w+)\/(\w+)\.(\w+)/), "\(row)").output
            let text = try #require(try self.source(of: "\(parts.2)", in: "\(parts.1)"), "\(name)")
            let function = try #require(text.range(of: "func \(parts.3)("), "\(name)")
            #expect(text[..<function.lowerBound].contains("@Test("), "\(name)")
        }
    }

    /// Returns the text of the file that declares a suite of a module of tests, from the declaration on.
    private func source(of suite: String, in module: String) throws -> Substring? {
        let root = RunningGateway.root.appendingPathComponent("Tests")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path)
        for path in paths where path.hasSuffix(".swift") && path.split(separator: "/").contains(module[...]) {
            let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
            let declaration = text.range(of: "(struct|class) \(suite)[: ]", options: .regularExpression)
            if let declaration { return text[declaration.lowerBound...] }
        }
        return nil
    }
}
