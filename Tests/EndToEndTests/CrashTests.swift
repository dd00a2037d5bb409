import Foundation
import Testing

@Suite("Crashes", .serialized, .timeLimit(.minutes(15)))
struct CrashTests {
    @Test("No push that was answered 200 is missing, and no book differs, after eight kills at random moments")
    func kills() throws {
        try #require(FileManager.default.fileExists(atPath: RunningGateway.python), "run deploy/setup first")
        let arguments = ["crash.driver", "--program", RunningGateway.program, "--kills", "8", "--devices", "80"]
        // Its output names every check, what it found, and the seed that draws the same moments again.
        let ended = try ChildProcess(RunningGateway.library, arguments).finish(within: 800)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }
}
