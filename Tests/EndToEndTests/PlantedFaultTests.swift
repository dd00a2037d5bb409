import Foundation
import Glibc
import Testing
import WakeGateTestKit

@Suite("The catalogue of planted faults", .timeLimit(.minutes(15)))
struct PlantedFaultTests {
    @Test("Every fault is found in the sources, exactly once")
    func fits() throws {
        let script = RunningGateway.root.appendingPathComponent("deploy/mutations").path
        let ended = try ChildProcess.run(script, ["--check"])
        #expect(ended.status == 0, "\(ended.output) \(ended.errors)")
        let count = try #require(ended.output.firstMatch(of: #/^([0-9]+) of \1 are found/#).flatMap { Int($0.1) })
        #expect(count >= 100)
    }

    /// Creates a directory with the commands of this checkout but without its sources.
    private static func makeFolder() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try FileManager.default.createSymbolicLink(
            at: folder.url.appendingPathComponent("deploy"),
            withDestinationURL: RunningGateway.root.appendingPathComponent("deploy")
        )
        return folder
    }

    @Test("A fault without a matching text is named")
    func rots() throws {
        let folder = try Self.makeFolder()
        let ended = try ChildProcess.run("\(folder.path)/deploy/mutations", ["--check"])
        #expect(ended.status == 1)
        #expect(ended.output.contains("policy.interval: no Sources/"))
    }

    @Test("Every fault is found after files move, types are renamed, and lines are indented differently")
    func moves() throws {
        let folder = try Self.makeFolder()
        let script = #"""
            set -euo pipefail
            mkdir -p Sources/Elsewhere
            number=0
            find "$0/Sources" -name '*.swift' | while read -r file; do
                number=$((number + 1))
                sed -E 's/\b(DeviceLanes|Dispatcher)\b/Renamed/g; s/^    /  /' "$file" >Sources/Elsewhere/$number.swift
            done
            (($(ls Sources/Elsewhere | wc -l) > 100))
            """#
        let arguments = ["-c", script, RunningGateway.root.path]
        let moved = try ChildProcess.run("bash", arguments, folder: folder.url)
        #expect(moved.status == 0, "\(moved.errors)")
        let ended = try ChildProcess.run("\(folder.path)/deploy/mutations", ["--check"])
        #expect(ended.status == 0, "\(ended.output) \(ended.errors)")
    }
}

@Suite("The threat model names existing tests", .timeLimit(.minutes(15)))
struct ThreatModelTests {
    @Test("Every threat of the article has a test of that name, with a rule in words")
    func tests() throws {
        let text = try Checkout.article("ThreatModel")
        let section = try #require(
            text.components(separatedBy: "\n## Threats and defenses").dropFirst().first?
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
        let root = Checkout.root.appendingPathComponent("Tests")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path)
        for path in paths where path.hasSuffix(".swift") && path.split(separator: "/").contains(module[...]) {
            let text = try Checkout.text("Tests/\(path)")
            let declaration = text.range(of: "(struct|class) \(suite)[: ]", options: .regularExpression)
            if let declaration { return text[declaration.lowerBound...] }
        }
        return nil
    }
}
