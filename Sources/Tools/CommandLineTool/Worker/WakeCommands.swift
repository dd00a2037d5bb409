import FoundationEssentials
import Wire

/// `wakegate wake`.
package enum WakeCommands {
    /// The environment variable in which a worker's command finds its wake.
    private static let variable = "WAKEGATE_WAKE"

    static func extend(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let wake = try self.wake(parsed.arguments.first, ProcessInfo.processInfo.environment)
        let location = try GatewayLocation(parsed, side: .edge)
        let body = parsed.integer("--seconds").map { Array("{\"seconds\":\($0)}".utf8) }
        let request = location.request("POST", "/v1/wakes/\(wake)/extend", body: body)
        return try parsed.show(try location.answer(request, with: try location.client())) { answer in
            "the wake has \((answer["timeLeft"]?.integer ?? 0) / 1000) s left\n"
        }
    }

    /// Returns the identifier of the wake.
    ///
    /// - Parameters:
    ///   - argument: the argument on the command line; nil if there is none.
    ///   - variables: the environment. In a worker's command, it contains the wake.
    /// - Throws: `badUsage` if neither contains a wake, or if the text is not an identifier.
    package static func wake(_ argument: String?, _ variables: [String: String]) throws(CommandFailure) -> String {
        guard let wake = argument ?? variables[self.variable], !wake.isEmpty else {
            throw .usage("WAKE is missing, and so is \(self.variable), which the commands of `wakegate worker` have")
        }
        guard wake.utf8.count == 32, wake.allSatisfy({ $0.isASCII && $0.isHexDigit }) else {
            throw .usage("\"\(TerminalText.sanitized(wake))\" is not the id of a wake, which has 32 hexadecimal digits")
        }
        return wake
    }
}

extension CommandDefinition {
    package static let wakeExtend = CommandDefinition(
        "wake extend",
        "request more time for a wake, in a worker's command",
        arguments: [ArgumentDefinition("WAKE", "the wake's id; default: WAKEGATE_WAKE", count: 0...1)],
        options: [
            OptionDefinition(
                "--seconds N",
                "the time from now; default: a full window",
                value: .integer(1...86_400)
            ), OptionDefinition("--json", "print the gateway's answer unchanged"),
        ] + OptionDefinition.client,
        example: "wakegate wake extend --seconds 60",
        notes: """
            The deadline never moves back, and never more than policy.maxExtension (270 s) beyond the first one. The
            command fails if no more time is allowed, or if the wake has ended. In a command of `wakegate worker`, the
            wake is that of WAKEGATE_WAKE, and the environment has the worker's options for the gateway, except for
            --token: start the worker with --token-file. The time of a continued task depends on its progress instead.
            """,
        run: WakeCommands.extend
    )
}
