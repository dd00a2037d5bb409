import HTTPClient
import Platform
import Wire

/// `wakegate task`.
package enum TaskCommands {
    /// The kinds by which a list can be filtered.
    package static let listedKinds = TaskSubmission.kinds + ["urlSession"]
    package static let states = ["waiting", "running"]

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
        let (kind, wanted) = (parsed.text("--kind"), parsed.text("--state"))
        return try parsed.show(try self.answer(parsed, "GET", path, nil)) { answer in
            guard !parsed.arguments.isEmpty else { return TaskText.all(answer) }
            return TaskText.device(answer) { task, state in
                (kind == nil || task["kind"]?.text == kind) && (wanted == nil || state == wanted)
            }
        }
    }

    private static func watch(_ parsed: ParsedCommand, _ path: String) throws(CommandFailure) -> Int32 {
        let location = try GatewayLocation(parsed, side: .admin)
        let (kind, state) = (parsed.text("--kind"), parsed.text("--state"))
        let model = TaskListModel(title: location.place, kind: kind, state: state)
        let connection = try WatchConnection(path, location)
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
    /// - Throws: `badUsage` for an unknown kind or state, or for a filter that the list of one device does not support.
    package static func listPath(_ parsed: ParsedCommand) throws(CommandFailure) -> String {
        _ = try TaskSubmission.word("--kind", of: parsed, among: self.listedKinds)
        _ = try TaskSubmission.word("--state", of: parsed, among: self.states)
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
    private static let json = OptionDefinition("--json", "", "the gateway's answer unchanged")

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
                "show its progress until it has ended, and exit as it did; Control-C cancels it; continued"
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
            device became too hot or short of memory or the app was force-quit, 7 when it never ran to an end, as
            another of its identifier took its place or it was dropped; 1 when it was not submitted, or its end is
            unknown.
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
            has not advanced for 15 seconds has stalled. It follows the terminal's size, and continues when the gateway
            comes back; q or Control-C ends it. NO_COLOR=1 removes the colors. With --json each answer is one line.
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
            runs continues; `wakegate task expire` ends it.
            """
        ],
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
        "end a running task as expired now, to try out its expiration handler",
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
            OptionDefinition("--count", "N", "how many; default: 1", value: .integer(1...100_000)),
            OptionDefinition("--id", "ID", "the same id again counts once"),
        ] + OptionDefinition.client,
        example: "wakegate task finished \(exampleToken) com.example.app.downloads --count 3",
        notes: ["A worker takes the wake that follows which names the session: `wakegate worker --session SESSION`."],
        run: TaskCommands.finished
    )
}
