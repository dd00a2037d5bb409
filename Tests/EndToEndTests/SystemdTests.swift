import Foundation
import Testing

@Suite("The units of systemd", .timeLimit(.minutes(15)))
struct SystemdTests {
    @Test("The worker's template is sound for systemd, with the program that was built")
    func verify() throws {
        let ended = try ChildProcess.run("systemd-analyze", ["verify", "--man=no", try self.instance().path])
        #expect(ended.status == 0)
        #expect(ended.output + ended.errors == "")
    }

    @Test("What the worker's template leaves open is little: less than 2 of 10 by systemd's own count")
    func security() throws {
        let unit = try self.instance()
        let ended = try ChildProcess.run(
            "systemd-analyze",
            ["security", "--no-pager", "--offline=true", "--threshold=20", unit.path]
        )
        #expect(ended.status == 0, "\(ended.output) \(ended.errors)")
        #expect(ended.output.contains("Overall exposure level"))
    }

    /// The template as an instance's file, in a folder of its own, which names the program that was built.
    private func instance() throws -> URL {
        let template = RunningGateway.root.appendingPathComponent("deploy/systemd/wakegate-worker@.service")
        let text = try String(contentsOf: template, encoding: .utf8)
        try #require(text.contains("ExecStart=/usr/bin/wakegate worker"))
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let unit = folder.appendingPathComponent("wakegate-worker@example.service")
        let program = text.replacingOccurrences(of: "/usr/bin/wakegate", with: RunningGateway.program)
        try program.write(to: unit, atomically: true, encoding: .utf8)
        return unit
    }
}
