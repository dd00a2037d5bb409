import HTTPClient
import Platform
import Wire

/// `wakegate task`.
package enum TaskCommands {
    static func submit(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let body = try TaskSubmission.body(parsed, now: SystemClock.wall)
        // The wait begins before the submission. A signal during the submission then cancels the task.
        var wait = parsed.isSet("--wait") ? try self.waitSession(parsed) : nil
        let response = try self.answer(parsed, "POST", self.tasksPath(parsed), Array(body.utf8))
        let isJSON = parsed.isSet("--json")
        _ = try parsed.show(response) { TaskText.submitted($0, now: SystemClock.wall) }
        guard wait != nil else { return 0 }
        guard let ending = try wait?.run() else { return TaskEnding.abandonedStatus }
        let name = JSONText.quoted(ending.name)
        let identifier = JSONText.quoted(parsed.arguments[1])
        let object = "{\"identifier\":\(identifier),\"ending\":\(name)}"
        if isJSON { Console.out(json: object) } else { Console.out("\(ending.name)\n") }
        return ending.exitStatus
    }

    private static func waitSession(_ parsed: ParsedCommand) throws(CommandFailure) -> TaskWaitSession {
        let location = try GatewayLocation(parsed, side: .admin)
        // Only the admin listener reports the end of a task, so the access to it is checked before the submission.
        let device = try location.answer(location.request("GET", self.devicePath(parsed)), with: location.client())
        guard device.status != 405 else {
            throw .failed(
                "\(location.url) does not say how a task ends; --wait needs the admin listener: name it with --gateway"
            )
        }
        try TaskRefusal.check(device, device: parsed.arguments.first)
        return try TaskWaitSession(
            location,
            device: parsed.arguments[0],
            identifier: parsed.arguments[1],
            isJSON: parsed.isSet("--json")
        )
    }

    static func list(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let path = try self.listPath(parsed)
        guard !parsed.isSet("--watch") else { return try self.watch(parsed, path) }
        return try parsed.show(try self.answer(parsed, "GET", path, nil)) { answer in
            guard !parsed.arguments.isEmpty else { return TaskText.all(answer) }
            return TaskText.device(answer, kind: parsed.text("--kind"), state: parsed.text("--state"))
        }
    }

    private static func watch(_ parsed: ParsedCommand, _ path: String) throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let (kind, state) = (parsed.text("--kind"), parsed.text("--state"))
        let model = TaskListModel(title: location.place, kind: kind, state: state)
        let connection = try WatchConnection(.poll(path), location)
        var session = ViewSession(model, connection, isJSON: parsed.isSet("--json"))
        return try session.run()
    }

    static func cancel(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let isAll = parsed.isSet("--all")
        guard isAll == (parsed.arguments.count == 1) else {
            throw .usage(
                isAll
                    ? "an ID and --all were both given; give one of them"
                    : "ID is missing; name the task, or write --all for every task of the device"
            )
        }
        // The tasks are listed first, because the answer to a cancellation does not say whether the task existed.
        let listed = try GatewayAnswer.object(try self.answer(parsed, "GET", self.tasksPath(parsed), nil))
        let running = (listed["running"]?.elements ?? []).filter { $0["kind"]?.text == "continued" }
        let tasks = (listed["waiting"]?.elements ?? []) + running
        let isThere = isAll ? !tasks.isEmpty : tasks.contains { $0["identifier"]?.text == parsed.arguments[1] }
        _ = try self.answer(parsed, "DELETE", isAll ? self.tasksPath(parsed) : self.taskPath(parsed), nil)
        if isAll {
            Console.error("wakegate: the device \(isThere ? "has no more tasks to launch" : "had no tasks to cancel")")
        } else if isThere {
            Console.error("wakegate: the task is cancelled")
        } else {
            let problem = "the device has no task \(parsed.arguments[1]) that waits, or is continued and runs"
            throw .failed("\(problem); `wakegate task list` shows all its tasks")
        }
        return 0
    }

    /// Simulates an event of a task: `launch` or `expiration`.
    static func simulate(_ event: String, saying message: String) -> CommandDefinition.Run {
        { parsed throws(CommandFailure) in
            _ = try self.answer(parsed, "POST", "\(self.taskPath(parsed))/simulate-\(event)", [])
            Console.error("wakegate: \(message)")
            return 0
        }
    }

    static func finished(_ parsed: ParsedCommand) async throws(CommandFailure) -> Int32 {
        let path = "\(self.devicePath(parsed))/sessions/\(URLPath.component(parsed.arguments[1]))"
        let id = parsed.text("--id").map { ",\"id\":\(JSONText.quoted($0))" } ?? ""
        _ = try self.answer(parsed, "POST", path, Array("{\"finished\":\(parsed.integer("--count") ?? 1)\(id)}".utf8))
        Console.error("wakegate: the gateway accepted the report")
        return 0
    }

    // MARK: Requests

    /// Returns the path of a list, with its filters.
    ///
    /// - Throws: `badUsage` for a filter that the list of one device does not support.
    package static func listPath(_ parsed: ParsedCommand) throws(CommandFailure) -> String {
        guard parsed.arguments.isEmpty else {
            if parsed.isSet("--topic") {
                throw .usage("--topic is for all devices, and DEVICE has one topic; leave it out")
            }
            if parsed.isSet("--json"), let option = ["--kind", "--state"].first(where: { parsed.isSet($0) }) {
                throw .usage("--json shows the gateway's answer for DEVICE unchanged; leave \(option) out")
            }
            return self.tasksPath(parsed)
        }
        let filters = ["topic", "kind", "state"].compactMap { name in
            parsed.text("--\(name)").map { "\(name)=\(URLPath.component($0))" }
        }
        return filters.isEmpty ? "/v1/tasks" : "/v1/tasks?\(filters.joined(separator: "&"))"
    }

    private static func devicePath(_ parsed: ParsedCommand) -> String {
        "/v1/devices/\(URLPath.component(parsed.arguments[0]))"
    }

    private static func tasksPath(_ parsed: ParsedCommand) -> String { "\(self.devicePath(parsed))/tasks" }

    private static func taskPath(_ parsed: ParsedCommand) -> String {
        "\(self.tasksPath(parsed))/\(URLPath.component(parsed.arguments[1]))"
    }

    /// Sends a request and returns its successful answer.
    private static func answer(
        _ parsed: ParsedCommand,
        _ method: String,
        _ path: String,
        _ body: [UInt8]?
    ) throws(CommandFailure) -> HTTPResponse {
        let response = try parsed.ask(method, path, body: body)
        let identifier = parsed.arguments.count > 1 ? parsed.arguments[1] : nil
        try TaskRefusal.check(response, device: parsed.arguments.first, identifier: identifier)
        return response
    }
}

extension CommandDefinition {
    private static let exampleToken = String(repeating: "0badcafe", count: 8)
    private static let device = ArgumentDefinition("DEVICE", "the device token, hexadecimal")
    private static let identifier = ArgumentDefinition("ID", "the task's identifier")
    private static let json = OptionDefinition("--json", "print the gateway's answer unchanged")

    package static let taskSubmit = CommandDefinition(
        "task submit",
        "submit a background task for a device, and print when it may launch",
        arguments: [device, identifier],
        options: [
            OptionDefinition(
                "--kind KIND",
                "appRefresh, processing or continued",
                value: .word,
                isRequired: true,
                words: TaskSubmission.kinds
            ),
            OptionDefinition("--earliest-begin WHEN", "the earliest launch: 15m from now, or a time of RFC 3339"),
            OptionDefinition("--requires-network", "launch only while the device has a network; for processing"),
            OptionDefinition("--requires-power", "launch only while the device is charging; for processing"),
            OptionDefinition("--title TEXT", "the title for people; for continued"),
            OptionDefinition("--subtitle TEXT", "the subtitle for people; for continued"),
            OptionDefinition(
                "--strategy queue|fail",
                "wait if it cannot launch at once (queue, the default), or be refused; for continued"
            ),
            OptionDefinition(
                "--resource NAME",
                "launch only on a worker that offers this resource; for continued",
                isRepeatable: true,
                words: ["gpu"]
            ),
            OptionDefinition(
                "--wait",
                "show progress until the task ends, and exit with its outcome; Control-C cancels it; for continued"
            ),
            json,
        ] + OptionDefinition.client,
        example:
            "wakegate task submit \(exampleToken) com.example.app.refresh --kind appRefresh --earliest-begin 15m",
        notes: """
            The gateway stores the request and launches it once. A waiting request with the same identifier is replaced.
            The key topics.<topic>.tasks of the configuration names the identifiers that a topic may use; `wakegate dev`
            permits every one. The request launches on a worker that names it: `wakegate worker --task ID`.

            With --wait, the terminal shows a progress bar. Without a terminal, each new step is printed on a line; with
            --json, one object is printed at the end. Control-C or SIGTERM cancels the task, and the command exits when
            the task has ended; a second one exits at once, with 130. If the connection to the gateway ends, the command
            and the task wait until it is back. The exit status is 0 for success, 3 if the worker reported a failure, 4
            if the task expired, 5 if it was cancelled, and 6 if the device became too hot or short of memory, or the
            app was force-quit. It is 7 if the task did not finish, because another one with its identifier replaced it
            or it was dropped, and 1 if it was not submitted or its outcome is unknown.
            """,
        run: TaskCommands.submit
    )

    package static let taskList = CommandDefinition(
        "task list",
        "list the waiting and running tasks of one or all devices",
        arguments: [ArgumentDefinition("DEVICE", "the device token; without it, all devices", count: 0...1)],
        options: [
            OptionDefinition("--topic TOPIC", "only tasks of one topic"),
            OptionDefinition(
                "--kind KIND",
                "only tasks of one kind",
                value: .word,
                words: TaskSubmission.kinds + ["urlSession"]
            ),
            OptionDefinition(
                "--state STATE",
                "only waiting or only running tasks",
                value: .word,
                words: ["waiting", "running"]
            ),
            OptionDefinition("--watch", "update the list in place; without a terminal, print a line per change"),
            json,
        ] + OptionDefinition.client,
        example: "wakegate task list --topic com.example.app --state waiting",
        notes: """
            Without DEVICE it lists at most 1000 tasks.

            --watch draws a bar for each running continued task, with its rate and the remaining time; a task without
            progress for 15 seconds is stalled. It follows the terminal's size, and continues when the gateway comes
            back; q or Control-C ends it. NO_COLOR=1 removes the colors. With --json each answer is one line.
            """,
        run: TaskCommands.list
    )

    package static let taskCancel = CommandDefinition(
        "task cancel",
        "cancel a task of a device, or all of them",
        arguments: [device, ArgumentDefinition("ID", "the task's identifier", count: 0...1)],
        options: [OptionDefinition("--all", "every task of the device")] + OptionDefinition.client,
        example: "wakegate task cancel \(exampleToken) com.example.app.refresh",
        notes: """
            A waiting task is dropped, and a running continued task ends. A running app refresh or processing task
            continues; `wakegate task expire` ends it.
            """,
        run: TaskCommands.cancel
    )

    package static let taskLaunch = CommandDefinition(
        "task launch",
        "launch a waiting task now, despite all holds, to test its handler",
        arguments: [device, identifier],
        options: OptionDefinition.client,
        example: "wakegate task launch \(exampleToken) com.example.app.refresh",
        run: TaskCommands.simulate("launch", saying: "the task is launched")
    )

    package static let taskExpire = CommandDefinition(
        "task expire",
        "end a running task as expired now, to test its expiration handler",
        arguments: [device, identifier],
        options: OptionDefinition.client,
        example: "wakegate task expire \(exampleToken) com.example.app.refresh",
        run: TaskCommands.simulate("expiration", saying: "the task has expired")
    )

    package static let taskFinished = CommandDefinition(
        "task finished",
        "report that transfers of a background session have finished",
        arguments: [device, ArgumentDefinition("SESSION", "the session's name")],
        options: [
            OptionDefinition("--count N", "the number of transfers; default: 1", value: .integer(1...100_000)),
            OptionDefinition("--id ID", "an id of this report; a repetition with the same id counts once"),
        ] + OptionDefinition.client,
        example: "wakegate task finished \(exampleToken) com.example.app.downloads --count 3",
        notes: "The wake goes to a worker that names the session: `wakegate worker --session SESSION`.",
        run: TaskCommands.finished
    )
}
