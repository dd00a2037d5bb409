package import HTTPClient
import Wire

/// What a gateway that refuses a command about tasks says, and what to do about it with this program.
package enum TaskRefusal {
    /// - Parameters:
    ///   - response: any answer.
    ///   - device: the device that was asked for, as it was written; nil for all.
    ///   - identifier: of the task, if one was named.
    /// - Throws: with the gateway's reason and message, and the remedy, when the status is not 2xx.
    package static func check(
        _ response: HTTPResponse,
        device: String?,
        identifier: String? = nil
    ) throws(CommandFailure) {
        guard !response.isSuccess else { return }
        let refusal = GatewayAnswer.refusal(response)
        let reason = (try? JSONReader.read(String(decoding: response.body, as: UTF8.self)))?["reason"]?.text
        let remedy = reason.flatMap { self.remedy($0, device: device ?? "TOKEN", identifier: identifier) }
        throw CommandFailure(.failed, remedy.map { "\(refusal)\n\($0)" } ?? refusal)
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
            "`wakegate device conditions \(device) appState=active` says that somebody uses the device"
        case "TooManyPendingTaskRequests":
            "`wakegate task list \(device)` shows what waits, and `wakegate task cancel \(device) ID` drops one"
        case "ImmediateRunIneligible": "with --strategy queue it waits until it can launch"
        case "UnknownDevice", "Unregistered":
            "`wakegate device register \(device) --topic TOPIC` makes the device known"
        case "BadPath": "name the gateway's admin listener with --gateway, and see the gateway's version"
        default: nil
        }
    }
}
