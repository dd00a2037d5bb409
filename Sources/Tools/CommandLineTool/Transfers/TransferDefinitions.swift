extension CommandDefinition {
    private static let session = ArgumentDefinition("SESSION", "the session's identifier")
    private static let json = OptionDefinition("--json", "", "what the agent says, as JSON")
    private static let agent = OptionDefinition(
        "--agent",
        "unix:PATH",
        "the socket of `wakegate transfers`; before WAKEGATE_TRANSFERS"
    )
    private static let exampleTransfer = String(repeating: "0badcafe", count: 4)
    private static let exampleSession = "com.example.app.downloads"

    private static func yesOrNo(_ name: String, _ help: String) -> OptionDefinition {
        OptionDefinition(name, "yes|no", help, words: ["yes", "no"])
    }

    private static let whereTheAgentIs = """
        The agent is looked for at --agent, at WAKEGATE_TRANSFERS, at wakegate/transfers.sock in XDG_RUNTIME_DIR, and at
        /run/wakegate-transfers/USER/transfers.sock. Exit status 69 means that none listens there, 77 that it is another
        user's.
        """

    package static let transferAdd = CommandDefinition(
        "transfer add",
        "hand a download or an upload to the transfers agent, which completes it on its own",
        arguments: [session, ArgumentDefinition("URL", "where it comes from, or goes to")],
        options: [
            OptionDefinition("--to", "PATH", "wait for the download, and take its file to this place"),
            OptionDefinition("--replace", "", "replace a file that is at that place"),
            OptionDefinition("--wait", "", "wait for its end, and show its progress"),
            OptionDefinition("--upload", "FILE", "send this file instead of fetching one"),
            OptionDefinition("--method", "METHOD", "the method; default: GET, PUT for an upload"),
            OptionDefinition(
                "--header",
                "\"NAME: VALUE\"",
                "a header field to send; @FILE for those in a file, which ps does not show",
                isRepeatable: true
            ),
            OptionDefinition("--earliest-begin", "WHEN", "not before: 15m from now, or an instant of RFC 3339"),
            OptionDefinition("--sha256", "DIGITS", "the SHA-256 that the download must have"),
            OptionDefinition("--bytes-max", "N", "how many bytes it may have", value: .integer(1...(1 << 62))),
            OptionDefinition("--note", "TEXT", "text for the program that takes the file, such as where it belongs"),
            json, agent,
        ],
        example: "wakegate transfer add \(exampleSession) https://example.com/film.mp4 --to film.mp4",
        notes: [
            """
            It writes the transfer's name to standard output as soon as the transfer is safe with the agent, and makes
            the session if there is none. Its progress goes to standard error: a bar in a terminal, else a line a
            second; with --json each event goes to standard output. Ending the command does not end the transfer.
            Exit status 1 means that the agent refused it, or that it was waited for and did not finish.
            """, whereTheAgentIs,
        ],
        run: TransferCommands.add
    )

    package static let transferList = CommandDefinition(
        "transfer list",
        "show a session's transfers, and why they wait or have failed",
        arguments: [session],
        options: [
            OptionDefinition("--state", "STATE", "those in one state", words: TransferCommands.states), json, agent,
        ],
        example: "wakegate transfer list \(exampleSession) --state waiting",
        notes: ["With --json it shows the agent's answers unchanged, one for each 1000 transfers.", whereTheAgentIs],
        run: TransferCommands.list
    )

    package static let transferWait = CommandDefinition(
        "transfer wait",
        "wait until transfers have ended, and show their progress",
        arguments: [
            session,
            ArgumentDefinition("TRANSFER", "the transfers; all of the session without it", count: 0...1000),
        ],
        options: [json, agent],
        example: "wakegate transfer wait \(exampleSession)",
        notes: [
            """
            How far they are goes to standard error: a bar with rate and time left in a terminal, else a line a second;
            with --json each event goes to standard output, an object a line. An agent that starts anew is waited for,
            a minute at most. Exit status 0 means that all have finished, 1 that one has failed or was cancelled.
            While it waits the agent requests no wake.
            """, whereTheAgentIs,
        ],
        run: TransferCommands.wait
    )

    package static let transferCancel = CommandDefinition(
        "transfer cancel",
        "cancel a transfer, or all of a session",
        arguments: [session, ArgumentDefinition("TRANSFER", "the transfer", count: 0...1)],
        options: [
            OptionDefinition("--all", "", "every transfer of the session that has not ended"),
            OptionDefinition("--keep", "", "keep what was received for a later download of the same URL"), agent,
        ],
        example: "wakegate transfer cancel \(exampleSession) \(exampleTransfer) --keep",
        notes: ["Of a download that has finished and was not taken it removes the file.", whereTheAgentIs],
        run: TransferCommands.cancel
    )

    package static let transferTake = CommandDefinition(
        "transfer take",
        "move the file of a finished download to its place",
        arguments: [
            session, ArgumentDefinition("TRANSFER", "the transfer, 32 hexadecimal digits", count: 0...1),
            ArgumentDefinition("PATH", "where the file goes", count: 0...1),
        ],
        options: [
            OptionDefinition("--noted", "", "take all that have finished, each to the place that is its note"),
            OptionDefinition("--replace", "", "replace a file that is there"), agent,
        ],
        example: "wakegate transfer take \(exampleSession) \(exampleTransfer) film.mp4",
        notes: [
            """
            The file appears at its place whole or not at all. A file not taken within seven days is deleted. A worker
            runs it with --noted when it is woken:
              wakegate worker --topic TOPIC --session SESSION -- wakegate transfer take SESSION --noted
            Exit status 1 means that a file was not taken.
            """, whereTheAgentIs,
        ],
        run: TransferCommands.take
    )

    package static let transferSession = CommandDefinition(
        "transfer session",
        "make or change a session of the transfers agent and show it, or list them all",
        arguments: [ArgumentDefinition("SESSION", "the session's identifier; all without it", count: 0...1)],
        options: [
            OptionDefinition("--device", "TOKEN", "who is woken when all transfers have ended"),
            OptionDefinition("--topic", "TOPIC", "that device's topic"),
            yesOrNo("--launch-events", "whether the worker is woken; default: yes"),
            yesOrNo(
                "--discretionary",
                "wait for power, no low power mode, a cool machine, and a network without limits; default: no"
            ),
            yesOrNo("--metered", "go over a metered network, too; default: yes"),
            yesOrNo("--constrained", "go over a network with data saving, too; default: yes"),
            yesOrNo("--after-force-quit", "continue while the app is force-quit on the device; default: no"),
            yesOrNo("--early-answers", "finish an upload that the server accepts unread; default: no"),
            OptionDefinition(
                "--request-timeout",
                "DURATION",
                "how long a server may be silent; default: 1m",
                value: .duration(1...604_800)
            ),
            OptionDefinition(
                "--resource-timeout",
                "DURATION",
                "how long a transfer is tried; default: 7d",
                value: .duration(1...31_536_000)
            ),
            OptionDefinition("--connections", "N", "connections to one server; default: 6", value: .integer(1...64)),
            OptionDefinition("--remove", "", "cancel its transfers, and remove the session and its files"), json, agent,
        ],
        example: "wakegate transfer session \(exampleSession) --topic com.example.app --device \(exampleTransfer)",
        notes: ["Settings that no option names keep their values.", whereTheAgentIs],
        run: TransferSessionCommand.run
    )
}
