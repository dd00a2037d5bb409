import Foundation
import Glibc
import Testing

@Suite("Attacks", .serialized, .timeLimit(.minutes(15)))
struct AttackTests {
    /// The attacks that `deploy/lib/soak/offences.py` describes.
    static let names = [
        "rapid-reset", "made-you-reset", "continuation-flood", "endless-trailers", "trailers-again", "settings-flood",
        "ping-flood", "priority-flood", "empty-data-flood", "window-update-flood", "hpack-bomb", "trailer-bomb",
        "zero-window", "unread-answers", "slow-headers", "slow-bodies", "kept-blocks", "kept-frames",
        "unacknowledged-settings", "key-updates", "half-open", "garbage",
    ]
    /// Each attack over TLS and in cleartext, except for those that require TLS.
    static let runs = Self.names.flatMap { name in
        (name == "key-updates" ? ["tls"] : ["tls", "h2c"]).map { (name, $0) }
    }

    @Test(
        "The offender is cut off, a healthy client is answered, and neither memory nor descriptors stay",
        arguments: Self.runs
    )
    func attack(name: String, transport: String) throws {
        let ended = try Self.driver("--attack", name, "--transport", transport)
        // The output lists every check with its findings.
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    @Test("Every attack there is has its test")
    func all() throws {
        let usage = try Self.driver("--help").output
        let choices = try #require(usage.firstRange(of: /--attack {([^}]*)}/).map { usage[$0] })
        let listed = choices.dropFirst("--attack {".count).dropLast().split { ", \n".contains($0) }
        #expect(listed.map(String.init) == Self.names)
    }

    private static func driver(_ arguments: String...) throws -> ChildProcess.Ended {
        try #require(FileManager.default.fileExists(atPath: RunningGateway.python), "run deploy/setup first")
        let command = ["soak.attacks", "--program", RunningGateway.program] + arguments
        return try ChildProcess(RunningGateway.library, command).finish(within: 240)
    }
}

@Suite("Short trials", .timeLimit(.minutes(15)))
struct DriverTests {
    /// A driver lists every check with its findings, and the seed that reproduces the run.
    @Test(
        "Every check of a driver holds",
        arguments: [
            (
                "after eight kills at random moments no push answered 200 is missing, and all counters agree",
                ["crash.driver", "--kills", "8", "--devices", "80"]
            ),
            (
                // Damages each file of each state once.
                "a start over damaged, cut, swapped or missing files has everything, or names what is missing",
                ["soak.damage", "--starts", "28"]
            ),
            (
                "changing entities, faulty servers, full disks, other users, kills: each file is complete or absent",
                ["soak.transfer_scenes"]
            ),
        ]
    )
    func run(rule: String, command: [String]) throws {
        try #require(FileManager.default.fileExists(atPath: RunningGateway.python), "run deploy/setup first")
        let arguments = [command[0], "--program", RunningGateway.program] + command.dropFirst()
        let ended = try ChildProcess(RunningGateway.library, arguments).finish(within: 800)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }
}
