import Foundation
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
    /// Each over TLS, and in cleartext, but for what only TLS has.
    static let runs = Self.names.flatMap { name in
        (name == "key-updates" ? ["tls"] : ["tls", "h2c"]).map { (name, $0) }
    }

    @Test(
        "The offender is cut off, a healthy client is answered, and neither memory nor descriptors stay",
        arguments: Self.runs
    )
    func attack(name: String, transport: String) throws {
        let ended = try Self.driver("--attack", name, "--transport", transport)
        // Its output names every check, and what it found.
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
