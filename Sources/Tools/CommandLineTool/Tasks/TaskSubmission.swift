package import HTTPClient
import Wire

/// Makes the request body of `wakegate task submit`.
package enum TaskSubmission {
    /// The kinds of tasks that can be submitted.
    package static let kinds = ["appRefresh", "processing", "continued"]

    /// Returns the JSON object of the request. The gateway checks the identifiers and texts.
    ///
    /// - Parameters:
    ///   - parsed: a command line of `task submit`.
    ///   - now: the time in milliseconds since 1970.
    /// - Throws: `badUsage` for an invalid time or for an option of another kind of task.
    package static func body(_ parsed: ParsedCommand, now: Int64) throws(CommandFailure) -> String {
        let kind = parsed.text("--kind") ?? ""
        try self.checkOptions(parsed, of: kind)
        var members = [("identifier", JSONText.quoted(parsed.arguments[1])), ("kind", JSONText.quoted(kind))]
        if let text = parsed.text("--earliest-begin") {
            members.append(("earliestBegin", String(try TaskMoment.milliseconds(text, now: now))))
        }
        if parsed.isSet("--requires-network") { members.append(("requiresNetworkConnectivity", "true")) }
        if parsed.isSet("--requires-power") { members.append(("requiresExternalPower", "true")) }
        for name in ["title", "subtitle", "strategy"] {
            if let text = parsed.text("--\(name)") { members.append((name, JSONText.quoted(text))) }
        }
        let resources = parsed.all("--resource").map { JSONText.quoted($0) }
        if !resources.isEmpty { members.append(("resources", "[\(resources.joined(separator: ","))]")) }
        return "{\(members.map { "\"\($0.0)\":\($0.1)" }.joined(separator: ","))}"
    }

    private static func checkOptions(_ parsed: ParsedCommand, of kind: String) throws(CommandFailure) {
        let homes = [
            ("--requires-network", "processing"), ("--requires-power", "processing"), ("--title", "continued"),
            ("--subtitle", "continued"), ("--strategy", "continued"), ("--resource", "continued"),
            ("--wait", "continued"),
        ]
        for (option, home) in homes where parsed.isSet(option) && kind != home {
            throw .usage("\(option) is for --kind \(home), and the task is of kind \(kind); leave it out")
        }
    }
}

/// Explains the gateway's refusals of task commands.
package enum TaskRefusal {
    /// - Parameters:
    ///   - response: any answer.
    ///   - device: the device of the request, as the user wrote it; nil for all devices.
    ///   - identifier: the identifier of the task; nil if the request names none.
    /// - Throws: the gateway's reason and message with a remedy if the status is not 2xx.
    package static func check(
        _ response: HTTPResponse,
        device: String?,
        identifier: String? = nil
    ) throws(CommandFailure) {
        try GatewayAnswer.check(response) { self.remedy($0, device: device ?? "TOKEN", identifier: identifier) }
    }

    private static func remedy(_ reason: String, device: String, identifier: String?) -> String? {
        let device = ShellText.quoted(device)
        return switch reason {
        case "NotPermitted":
            "the key topics.<topic>.tasks of the gateway's configuration permits it, such as topics: { "
                + "\"<the device's topic>\": { tasks: [\(JSONText.quoted(identifier ?? "ID"))] } }; then "
                + "`wakegate reload`"
        case "Unavailable":
            "`wakegate device conditions \(device) backgroundRefresh=available` says that the device allows it"
        case "NotForeground":
            "`wakegate device conditions \(device) appState=active` says that a person uses the device"
        case "TooManyPendingTaskRequests":
            "`wakegate task list \(device)` shows the pending ones, and `wakegate task cancel \(device) ID` drops one"
        case "ImmediateRunIneligible": "with --strategy queue it waits until it can launch"
        case "UnknownDevice", "Unregistered":
            "`wakegate device register \(device) --topic TOPIC` makes the device known"
        case "TaskNotWaiting":
            "it may run already, or have ended: `wakegate task list \(device)` shows the tasks of the device"
        case "BadPath": "name the gateway's admin listener with --gateway, and see the gateway's version"
        default: nil
        }
    }
}
