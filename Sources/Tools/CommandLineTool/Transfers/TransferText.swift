package import BackgroundTransfers
import Platform
package import Wire

/// What an agent says of sessions and transfers, for people.
package enum TransferText {
    /// A line for each transfer below one that names the columns.
    package static func list(_ transfers: [BackgroundTransfer]) -> String {
        guard !transfers.isEmpty else { return "no transfers\n" }
        let rows = transfers.map { transfer in
            [
                transfer.id.description, transfer.isTaken ? "taken" : transfer.state.rawValue, self.bytes(transfer),
                "\(transfer.attemptCount)", transfer.url, self.remark(transfer),
            ]
        }
        return TaskText.table([["TRANSFER", "STATE", "BYTES", "TRIES", "URL", ""]] + rows)
    }

    private static func bytes(_ transfer: BackgroundTransfer) -> String {
        guard let total = transfer.total, total != transfer.bytes else { return ByteText.text(transfer.bytes) }
        return "\(ByteText.text(transfer.bytes)) of \(ByteText.text(total))"
    }

    /// Why it waits, why it failed, or the note it was given.
    private static func remark(_ transfer: BackgroundTransfer) -> String {
        switch transfer.state {
        case .waiting: transfer.why ?? transfer.note ?? ""
        case .failed: transfer.failure?.description ?? ""
        case .running, .finished, .cancelled: transfer.note ?? ""
        }
    }

    /// One line about a transfer that has ended.
    package static func ended(_ transfer: BackgroundTransfer) -> String {
        switch transfer.state {
        case .finished: "\(transfer.id) finished, \(ByteText.text(transfer.bytes))"
        case .failed: "\(transfer.id) failed: \(transfer.failure?.description ?? "the agent does not say why")"
        case .cancelled: "\(transfer.id) was cancelled"
        case .waiting, .running: "\(transfer.id) goes on"
        }
    }

    /// A session's settings and its transfers, a line each.
    package static func session(_ session: JSONValue) -> String {
        let names = [
            "session", "device", "topic", "discretionary", "sendsLaunchEvents", "allowsMetered",
            "acceptsEarlyAnswers", "requestTimeout", "resourceTimeout", "connectionsPerHost",
        ]
        var rows = names.compactMap { name in session[name].map { [name, self.plain($0)] } }
        for member in session["transfers"]?.members ?? [] { rows.append([member.name, self.plain(member.value)]) }
        return TaskText.table(rows)
    }

    private static func plain(_ value: JSONValue) -> String {
        switch value {
        case .string(let text): text
        case .bool(let flag): flag ? "yes" : "no"
        case .number(let number): number.text
        case .null, .array, .object: "-"
        }
    }

    /// A line for each session below one that names the columns.
    package static func sessions(_ sessions: [JSONValue]) -> String {
        guard !sessions.isEmpty else { return "no sessions\n" }
        let states = BackgroundTransfer.State.allCases.map(\.rawValue)
        let rows = sessions.map { session in
            let counts = states.map { session["transfers"]?[$0].map { self.plain($0) } ?? "-" }
            return [session["session"]?.text ?? "-"] + counts + [session["topic"]?.text ?? "-"]
        }
        return TaskText.table([["SESSION"] + states.map { $0.uppercased() } + ["TOPIC"]] + rows)
    }
}
