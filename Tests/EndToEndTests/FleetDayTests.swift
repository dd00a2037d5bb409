import Foundation
import Glibc
import Testing

@Suite("The day of a fleet", .timeLimit(.minutes(15)))
struct FleetDayTests {
    /// The page of a small fleet.
    private static func page(_ arguments: [String]) throws -> ChildProcess.Ended {
        let script = RunningGateway.root.appendingPathComponent("deploy/fleet-day").path
        return try ChildProcess.run(script, ["--program", RunningGateway.program, "--devices", "20"] + arguments)
    }

    @Test("Every check on its page holds, and the trace that it leaves has the launches that the page counts")
    func promises() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-fleet-\(getpid())")
        defer { try? FileManager.default.removeItem(at: folder) }
        let ended = try Self.page(["--seed", "7", "--keep", folder.path])
        #expect(ended.status == 0, "\(ended.output) \(ended.errors)")
        #expect(ended.output.hasPrefix("A day of 20 devices in virtual time"))
        let checks = ended.output.split(separator: "\n").filter { $0.hasPrefix("ok ") || $0.hasPrefix("FAILED") }
        #expect(checks.count == 7)
        let refreshes = try #require(ended.output.firstMatch(of: #/(?m)^refreshes +([0-9,]+) +([0-9,]+)$/#))
        for (name, settings, told) in [
            ("habits", [], refreshes.1), ("no-habits", ["--set", "policy.refreshFlex=0"], refreshes.2),
        ] {
            let trace = folder.appendingPathComponent("\(name).trace.jsonl").path
            let outcome = try ChildProcess.run(RunningGateway.program, ["simulate", trace] + settings)
            #expect(outcome.status == 0, "\(outcome.errors)")
            // The day that is counted begins after a week.
            let launches = outcome.output.split(separator: "\n").filter { line in
                let moment = line.prefixMatch(of: #/{"t":([0-9.]+),/#).flatMap { Double($0.1) } ?? 0
                return line.contains(#""kind":"appRefresh""#) && moment >= 604_800 && moment < 691_200
            }
            #expect(launches.count == Int(told.replacing(",", with: "")), "\(name)")
        }
    }

    @Test("A fleet that is too small to have habits is refused")
    func few() throws {
        let ended = try Self.page(["--devices", "19"])
        #expect(ended.status == 2)
        #expect(ended.errors.contains("a fleet has 20 to 100000 devices"))
    }
}
