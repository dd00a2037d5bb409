extension CommandDefinition {
    private static let session = ArgumentDefinition("SESSION", "the session's identifier")
    private static let json = OptionDefinition("--json", "print the agent's answer as JSON")
    private static let agent = OptionDefinition(
        "--agent unix:PATH",
        "the socket of `wakegate transfers`; overrides WAKEGATE_TRANSFERS"
    )
    private static let exampleTransfer = String(repeating: "0badcafe", count: 4)
    private static let exampleSession = "com.example.app.downloads"

    private static func yesOrNo(_ name: String, _ help: String) -> OptionDefinition {
        OptionDefinition("\(name) yes|no", help)
    }

    private static let whereTheAgentIs = """
        The agent's socket is --agent, WAKEGATE_TRANSFERS, wakegate/transfers.sock in XDG_RUNTIME_DIR, or
        /run/wakegate-transfers/USER/transfers.sock. Exit status 69 means that no agent listens there, and 77 that the
        agent belongs to another user.
        """

    package static let transferAdd = CommandDefinition(
        "transfer add",
        "give a download or an upload to the transfers agent",
        arguments: [session, ArgumentDefinition("URL", "the URL to download from or upload to")],
        options: [
            OptionDefinition("--to PATH", "wait for the download, and move its file to this path"),
            OptionDefinition("--replace", "replace an existing file at this path"),
            OptionDefinition("--wait", "wait until the transfer ends, and show its progress"),
            OptionDefinition("--upload FILE", "upload this file"),
            OptionDefinition("--method METHOD", "the HTTP method; default: GET for a download, PUT for an upload"),
            OptionDefinition(
                "--header \"NAME: VALUE\"",
                "a header field; @FILE reads fields from a file, so that ps does not show them",
                isRepeatable: true
            ),
            OptionDefinition("--earliest-begin WHEN", "the earliest begin: 15m from now, or a time of RFC 3339"),
            OptionDefinition("--sha256 DIGITS", "the required SHA-256 of the download"),
            OptionDefinition("--bytes-max N", "the maximum number of bytes", value: .integer(1...(1 << 62))),
            OptionDefinition("--note TEXT", "a text for the program that takes the file, such as its destination"),
            json, agent,
        ],
        example: "wakegate transfer add \(exampleSession) https://example.com/film.mp4 --to film.mp4",
        notes: """
            The command prints the transfer's name as soon as the agent has stored the transfer, and creates the session
            if it does not exist. Progress goes to standard error: a bar in a terminal, otherwise a line per second.
            With --json, each event goes to standard output. The transfer continues after the command has ended. Exit
            status 1 means that the agent refused the transfer, or that the command waited for it and it did not finish.

            \(whereTheAgentIs)
            """,
        run: TransferCommands.add
    )

    package static let transferList = CommandDefinition(
        "transfer list",
        "list a session's transfers, and why they wait or have failed",
        arguments: [session],
        options: [
            OptionDefinition("--state STATE", "those in this state", value: .word, words: TransferText.states), json,
            agent,
        ],
        example: "wakegate transfer list \(exampleSession) --state waiting",
        notes: "With --json it prints the agent's answers unchanged, one per 1000 transfers.\n\n\(whereTheAgentIs)",
        run: TransferCommands.list
    )

    package static let transferWait = CommandDefinition(
        "transfer wait",
        "wait until transfers have ended, and show their progress",
        arguments: [
            session,
            ArgumentDefinition("TRANSFER", "the transfers; without it, all of the session", count: 0...1000),
        ],
        options: [json, agent],
        example: "wakegate transfer wait \(exampleSession)",
        notes: """
            Progress goes to standard error: a bar with the rate and the remaining time in a terminal, otherwise a line
            per second. With --json, each event goes to standard output, one object per line. If the agent restarts, the
            command waits for it for up to a minute. Exit status 0 means that all transfers have finished, 1 that one
            has failed or was cancelled. While the command waits, the agent requests no wake.

            \(whereTheAgentIs)
            """,
        run: TransferCommands.wait
    )

    package static let transferCancel = CommandDefinition(
        "transfer cancel",
        "cancel a transfer, or all of a session",
        arguments: [session, ArgumentDefinition("TRANSFER", "the transfer", count: 0...1)],
        options: [
            OptionDefinition("--all", "all transfers of the session that have not ended"),
            OptionDefinition("--keep", "keep the received bytes for a later download of the same URL"), agent,
        ],
        example: "wakegate transfer cancel \(exampleSession) \(exampleTransfer) --keep",
        notes: "If a download has finished and was not taken, its file is removed.\n\n\(whereTheAgentIs)",
        run: TransferCommands.cancel
    )

    package static let transferTake = CommandDefinition(
        "transfer take",
        "move the file of a finished download to its destination",
        arguments: [
            session, ArgumentDefinition("TRANSFER", "the transfer, 32 hexadecimal digits", count: 0...1),
            ArgumentDefinition("PATH", "the destination of the file", count: 0...1),
        ],
        options: [
            OptionDefinition("--noted", "move the files of all finished downloads, each to the path in its note"),
            OptionDefinition("--replace", "replace an existing file"), agent,
        ],
        example: "wakegate transfer take \(exampleSession) \(exampleTransfer) film.mp4",
        notes: """
            The file appears at its destination complete or not at all. The agent deletes a file that is not taken
            within seven days. To move the files of a session when all its transfers have ended:
              wakegate worker --topic TOPIC --session SESSION -- wakegate transfer take SESSION --noted
            Exit status 1 means that a file was not taken.

            \(whereTheAgentIs)
            """,
        run: TransferCommands.take
    )

    package static let transferSession = CommandDefinition(
        "transfer session",
        "create, change or print a session of the transfers agent, or list all",
        arguments: [ArgumentDefinition("SESSION", "the session's identifier; without it, all sessions", count: 0...1)],
        options: [
            OptionDefinition("--device TOKEN", "the device to wake when all transfers have ended"),
            OptionDefinition("--topic TOPIC", "the topic of this device"),
            yesOrNo("--launch-events", "wake the worker; default: yes"),
            yesOrNo(
                "--discretionary",
                "wait for power, no low power mode, a cool machine, and an unlimited network; default: no"
            ),
            yesOrNo("--metered", "also use a metered network; default: yes"),
            yesOrNo("--constrained", "also use a network with data saving; default: yes"),
            yesOrNo("--after-force-quit", "continue while the app is force-quit on the device; default: no"),
            yesOrNo("--early-answers", "finish an upload that the server accepts before reading it; default: no"),
            OptionDefinition(
                "--request-timeout DURATION",
                "the maximum silence of a server; default: 1m",
                value: .duration(1...604_800)
            ),
            OptionDefinition(
                "--resource-timeout DURATION",
                "the maximum time for a transfer; default: 7d",
                value: .duration(1...31_536_000)
            ),
            OptionDefinition("--connections N", "connections to one server; default: 6", value: .integer(1...64)),
            OptionDefinition("--remove", "cancel its transfers, and remove the session and its files"), json, agent,
        ],
        example: "wakegate transfer session \(exampleSession) --topic com.example.app --device \(exampleTransfer)",
        notes: "Other settings keep their values.\n\n\(whereTheAgentIs)",
        run: TransferSessionCommand.run
    )
}
