import Foundation
import Testing

@Suite("Commands whose standard output takes nothing", .timeLimit(.minutes(15)))
struct LostOutputTests {
    private let topic = "com.example.lost"
    private let token = String(repeating: "10570570", count: 8)

    private func run(_ redirection: String, _ gateway: RunningGateway, _ words: [String]) throws -> ChildProcess.Ended {
        let script = #"exec "$@" "# + redirection
        let arguments = ["-c", script, "bash", RunningGateway.program] + words
        return try ChildProcess.run("bash", arguments, folder: gateway.folder)
    }

    @Test("They say that what they had to show is lost, and end with 1", arguments: [">/dev/full", ">&-"])
    func lost(redirection: String) throws {
        let gateway = try RunningGateway()
        let state = gateway.folder.appendingPathComponent(".wakegate").path
        let commands: [[String]] = [
            ["token", "issue", "--role", "operator", "--state", state],
            ["device", "register", "--topic", self.topic],
            ["push", self.token, "--topic", self.topic],
            ["--help"],
        ]
        for command in commands {
            let ended = try self.run(redirection, gateway, command)
            #expect(ended.status == 1, "\(command)")
            #expect(ended.errors.contains("the output is lost: standard output takes nothing"), "\(ended.errors)")
        }
        #expect(try gateway.stats().integer("pushes", "accepted") == 1)
    }

    @Test("A reader that has seen enough is no fault")
    func gone() throws {
        let gateway = try RunningGateway()
        let ended = try self.run("> >(exit 0)", gateway, ["push", self.token, "--topic", self.topic])
        #expect(ended.status == 0)
        #expect(!ended.errors.contains("lost"), "\(ended.errors)")
    }
}
