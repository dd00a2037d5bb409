import Foundation
import Glibc
import Testing

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

    @Test("A fault whose text is gone is named")
    func rots() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-planted-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createSymbolicLink(
            at: folder.appendingPathComponent("deploy"),
            withDestinationURL: RunningGateway.root.appendingPathComponent("deploy")
        )
        let ended = try ChildProcess.run(folder.appendingPathComponent("deploy/mutations").path, ["--check"])
        #expect(ended.status == 1)
        #expect(ended.output.contains("policy.interval: there is no Sources/"))
    }
}
