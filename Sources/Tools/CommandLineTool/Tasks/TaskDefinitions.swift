extension CommandDefinition {
    private static let exampleToken = String(repeating: "0badcafe", count: 8)
    private static let device = ArgumentDefinition("DEVICE", "the device token, hexadecimal")
    private static let identifier = ArgumentDefinition("ID", "the task's identifier")
    private static let json = OptionDefinition("--json", "", "the gateway's answer as it is")

    package static let taskSubmit = CommandDefinition(
        "task submit",
        "submit a background task for a device, and show when it may launch",
        arguments: [device, identifier],
        options: [
            OptionDefinition(
                "--kind",
                "KIND",
                "appRefresh, processing or continued",
                isRequired: true,
                words: TaskSubmission.kinds
            ),
            OptionDefinition("--earliest-begin", "WHEN", "not before: 15m from now, or an instant of RFC 3339"),
            OptionDefinition("--requires-network", "", "only while the device has a network; processing"),
            OptionDefinition("--requires-power", "", "only while the device is charging; processing"),
            OptionDefinition("--title", "TEXT", "what a person sees of it; continued"),
            OptionDefinition("--subtitle", "TEXT", "the same, below the title; continued"),
            OptionDefinition(
                "--strategy",
                "queue|fail",
                "wait when it cannot launch at once (queue, the default), or be refused; continued",
                words: TaskSubmission.strategies
            ),
            OptionDefinition(
                "--resource",
                "NAME",
                "only on a worker that has it; continued",
                isRepeatable: true,
                words: ["gpu"]
            ),
            OptionDefinition(
                "--wait",
                "",
                "show how far it is until it has ended, and exit as it did; Control-C cancels it; continued"
            ),
            json,
        ] + OptionDefinition.client,
        example:
            "wakegate task submit \(exampleToken) com.example.app.refresh --kind appRefresh --earliest-begin 15m",
        notes: [
            """
            The gateway keeps the request, launches it once, and forgets it; a waiting one of the same identifier is
            replaced. The key topics.<topic>.tasks of its configuration says which identifiers a topic may use; in
            `wakegate dev` that is every one. A worker takes it that names it: `wakegate worker --task ID`.
            """,
            """
            With --wait a bar shows how far the task is, on a line of the terminal; without a terminal it is a line for
            each step that is new, and with --json one object at the end. Control-C or SIGTERM cancels the task, and the
            command ends when that has ended; a second one ends the command at once, with 130. While the gateway is
            gone the command waits for it to come back: the task does, too. The exit status is the task's: 0 for
            success, 3 when the worker says that it failed, 4 when it expired, 5 when it was cancelled, 6 when the
            device became too hot or the app was force-quit, 7 when it never ran to an end, as another of its
            identifier took its place or it was dropped; 1 when it was not submitted, or nobody can say how it ended.
            """,
        ],
        run: TaskCommands.submit
    )

    package static let taskList = CommandDefinition(
        "task list",
        "show the tasks that wait and run, of one device or of all, and why they wait",
        arguments: [ArgumentDefinition("DEVICE", "the device token; all devices without it", count: 0...1)],
        options: [
            OptionDefinition("--topic", "TOPIC", "of one topic"),
            OptionDefinition("--kind", "KIND", "of one kind", words: TaskCommands.listedKinds),
            OptionDefinition("--state", "STATE", "waiting or running", words: TaskCommands.states),
            OptionDefinition("--watch", "", "a view that stays, with bars; without a terminal a line for what is new"),
            json,
        ] + OptionDefinition.client,
        example: "wakegate task list --topic com.example.app --state waiting",
        notes: [
            "Of all devices it shows at most 1000 tasks.",
            """
            --watch draws a bar for each continued task that runs, with its rate and the time that is left; one that
            has not advanced for 15 seconds has stalled. It follows the terminal's size, and goes on when the gateway
            comes back; q or Control-C ends it. NO_COLOR=1 takes the colours away. With --json each answer is one line.
            """,
        ],
        run: TaskCommands.list
    )

    package static let taskCancel = CommandDefinition(
        "task cancel",
        "cancel a task of a device, or all of them",
        arguments: [device, ArgumentDefinition("ID", "the task's identifier", count: 0...1)],
        options: [OptionDefinition("--all", "", "every task of the device")] + OptionDefinition.client,
        example: "wakegate task cancel \(exampleToken) com.example.app.refresh",
        notes: [
            """
            A task that waits is dropped, and a continued one that runs ends. An app refresh or a processing task that
            runs goes on; `wakegate task expire` ends it.
            """
        ],
        run: TaskCommands.cancel
    )

    package static let taskLaunch = CommandDefinition(
        "task launch",
        "launch a waiting task now, whatever holds it, to try out its handler",
        arguments: [device, identifier],
        options: OptionDefinition.client,
        example: "wakegate task launch \(exampleToken) com.example.app.refresh",
        run: TaskCommands.simulate("launch", saying: "the task is launched")
    )

    package static let taskExpire = CommandDefinition(
        "task expire",
        "end a running task as expired now, to try out its expiration handler",
        arguments: [device, identifier],
        options: OptionDefinition.client,
        example: "wakegate task expire \(exampleToken) com.example.app.refresh",
        run: TaskCommands.simulate("expiration", saying: "the task has expired")
    )

    package static let taskFinished = CommandDefinition(
        "task finished",
        "tell that transfers of a background session have finished",
        arguments: [device, ArgumentDefinition("SESSION", "the session's name")],
        options: [
            OptionDefinition("--count", "N", "how many; default: 1", value: .integer(1...100_000)),
            OptionDefinition("--id", "ID", "the same id again counts once"),
        ] + OptionDefinition.client,
        example: "wakegate task finished \(exampleToken) com.example.app.downloads --count 3",
        notes: ["A worker takes the wake that follows which names the session: `wakegate worker --session SESSION`."],
        run: TaskCommands.finished
    )
}
