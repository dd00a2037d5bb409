import Foundation
import Testing

@Suite("Damage", .serialized, .timeLimit(.minutes(15)))
struct DamageTests {
    @Test("A start over damaged, cut, swapped or missing files has everything, or says by name what it does without")
    func starts() throws {
        try #require(FileManager.default.fileExists(atPath: RunningGateway.python), "run deploy/setup first")
        // Each file of each state once.
        let arguments = ["soak.damage", "--program", RunningGateway.program, "--starts", "28"]
        // Its output names every check, what it found, and the seed that makes the same damages again.
        let ended = try ChildProcess(RunningGateway.library, arguments).finish(within: 800)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }
}
