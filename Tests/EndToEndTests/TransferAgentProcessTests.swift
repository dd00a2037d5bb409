import Foundation
import Testing

@Suite("The transfers agent in a process", .serialized, .timeLimit(.minutes(15)))
struct TransferAgentProcessTests {
    @Test("Entities that change, servers that lie, full disks, strangers, kills: each file is whole, or not there")
    func scenes() throws {
        try #require(FileManager.default.fileExists(atPath: RunningGateway.python), "run deploy/setup first")
        let arguments = ["soak.transfer_scenes", "--program", RunningGateway.program]
        // Its output names every check, what it found, and the seed that draws the same moments again.
        let ended = try ChildProcess(RunningGateway.library, arguments).finish(within: 800)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }
}
