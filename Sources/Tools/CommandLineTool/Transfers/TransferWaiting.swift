package import BackgroundTransfers
import Glibc
import HTTPClient
import Platform
import Synchronization
package import Wire

/// Waits for transfers to end and shows their progress: in a terminal as a bar, otherwise as one line per second or as
/// JSON events.
final class TransferWaiting: Sendable {
    /// The form in which progress is shown.
    enum Display: Sendable {
        case bar, lines, json

        /// Determines the form from the command line and from the type of standard error.
        init(_ parsed: ParsedCommand) {
            self = parsed.isSet("--json") ? .json : isatty(STDERR_FILENO) == 1 ? .bar : .lines
        }

        /// The interval between two updates, in milliseconds.
        var interval: Int64 { self == .bar ? 250 : 1000 }
    }

    private struct State {
        var transfers: [BackgroundTransferID: BackgroundTransfer] = [:]
        var bytes: [BackgroundTransferID: BackgroundTransferProgress] = [:]
        var meter = RateMeter(window: 5000)
    }

    private let session: BackgroundSession
    private let display: Display
    /// The transfers to wait for; nil for all transfers of the session.
    private let wanted: Set<BackgroundTransferID>?
    private let state = Mutex(State())

    init(_ session: BackgroundSession, _ wanted: Set<BackgroundTransferID>?, _ display: Display) {
        self.session = session
        self.wanted = wanted
        self.display = display
    }

    /// Waits until all transfers have ended.
    ///
    /// - Returns: the ended transfers, in the order in which they were added.
    func run() async throws(BackgroundTransferError) -> [BackgroundTransfer] {
        let listed = try await self.session.transfers()
        let known = Set(listed.map(\.id))
        if let unknown = self.wanted?.first(where: { !known.contains($0) }) {
            _ = try await self.session.transfer(unknown)
        }
        self.state.withLock { state in
            for transfer in listed where self.wanted?.contains(transfer.id) ?? true {
                state.transfers[transfer.id] = transfer
                state.bytes[transfer.id] = transfer.progress
            }
        }
        if self.display == .json { self.printCurrentStates(listed) }
        let showing = Task { await self.show() }
        defer { showing.cancel() }
        try await self.follow()
        showing.cancel()
        await showing.value
        self.draw(isLast: true)
        let ended = self.state.withLock { $0.transfers }
        return listed.compactMap { ended[$0.id] }
    }

    /// Prints events for the current states: the progress of unfinished transfers, and the end of each named transfer
    /// that has ended.
    private func printCurrentStates(_ listed: [BackgroundTransfer]) {
        for transfer in listed where self.wanted?.contains(transfer.id) ?? !transfer.state.isEnd {
            let line = transfer.state.isEnd ? TransferJSON.ended(transfer) : TransferJSON.progress(transfer.progress)
            Console.out(json: line)
        }
    }

    private var isOver: Bool { self.state.withLock { $0.transfers.values.allSatisfy(\.state.isEnd) } }

    private func follow() async throws(BackgroundTransferError) {
        guard !self.isOver else { return }
        var events = self.session.allEvents.makeAsyncIterator()
        while let event = try await events.next(isolation: nil) {
            switch event {
            case .progress(let progress):
                let isNew = self.state.withLock { state in
                    guard let transfer = state.transfers[progress.transfer], !transfer.state.isEnd else { return false }
                    // The agent may repeat the progress that the list had.
                    return state.bytes.updateValue(progress, forKey: progress.transfer) != progress
                }
                if isNew, self.display == .json { Console.out(json: TransferJSON.progress(progress)) }
            case .finished(let transfer), .failed(let transfer), .cancelled(let transfer): self.ended(transfer)
            case .idle: ()
            }
            if self.isOver { return }
        }
    }

    private func ended(_ transfer: BackgroundTransfer) {
        let isNew = self.state.withLock { state in
            guard let before = state.transfers[transfer.id], !before.state.isEnd else { return false }
            state.transfers[transfer.id] = transfer
            state.bytes[transfer.id] = transfer.progress
            return true
        }
        guard isNew, self.display == .json else { return }
        Console.out(json: TransferJSON.ended(transfer))
    }

    // MARK: Showing

    private func show() async {
        guard self.display != .json, let thread = try? HTTPThread.shared() else { return }
        while !Task.isCancelled {
            self.draw(isLast: false)
            await thread.wait(milliseconds: self.display.interval)
        }
    }

    private func draw(isLast: Bool) {
        let line = self.line
        switch self.display {
        case .json: ()
        case .lines: if !isLast || line.count == 1 { Console.error(line.text) }
        case .bar:
            let text = "\r\(line.bar(width: Terminal.size(of: STDERR_FILENO).width))\u{1B}[K"
            Console.drawError(isLast ? text + "\n" : text)
        }
    }

    private var line: TransferProgressLine {
        let now = SystemClock.monotonic
        return self.state.withLock { state in
            let all = state.bytes.values
            let bytes = all.reduce(Int64(0)) { $0 &+ $1.bytes }
            let totals = all.compactMap(\.total)
            state.meter.saw(Double(bytes), at: now)
            let rate = state.meter.rate
            let waiting = state.transfers.values.filter { !$0.state.isEnd }
            let why = rate ?? 0 < 1 ? waiting.lazy.compactMap(\.why).first : nil
            return TransferProgressLine(
                count: state.transfers.count,
                endedCount: state.transfers.count - waiting.count,
                bytes: bytes,
                total: totals.count == all.count ? totals.reduce(0, &+) : nil,
                rate: rate,
                why: why
            )
        }
    }
}

/// The JSON lines about a transfer.
enum TransferJSON {
    static func progress(_ progress: BackgroundTransferProgress) -> String {
        let total = progress.total.map(String.init) ?? "null"
        return #"{"event":"progress","transfer":"\#(progress.transfer)","bytes":\#(progress.bytes),"total":\#(total)}"#
            + "\n"
    }

    static func ended(_ transfer: BackgroundTransfer) -> String {
        var members = [
            ("event", JSONText.quoted(transfer.state.rawValue)), ("transfer", JSONText.quoted("\(transfer.id)")),
            ("url", JSONText.quoted(transfer.url)), ("bytes", "\(transfer.bytes)"),
            ("attempts", "\(transfer.attemptCount)"),
        ]
        if let status = transfer.httpStatus { members.append(("status", "\(status)")) }
        if let sha256 = transfer.sha256 { members.append(("sha256", JSONText.quoted(sha256))) }
        if let failure = transfer.failure {
            let reason = JSONText.quoted(failure.reason.rawValue)
            members.append(("error", #"{"reason":\#(reason),"message":\#(JSONText.quoted(failure.message))}"#))
        }
        if let note = transfer.note { members.append(("note", JSONText.quoted(note))) }
        return "{\(members.map { "\"\($0)\":\($1)" }.joined(separator: ","))}\n"
    }
}

/// The combined progress of several transfers, shown as one line.
package struct TransferProgressLine: Hashable, Sendable {
    /// The number of all transfers, and the number of those that have ended.
    package var count: Int
    package var endedCount: Int
    package var bytes: Int64
    /// The total size in bytes; nil while the size of a transfer is unknown.
    package var total: Int64?
    /// The rate in bytes per second; nil if not known yet.
    package var rate: Double?
    /// The reason why no transfer makes progress; nil if one makes progress or no reason is known.
    package var why: String?

    package init(count: Int, endedCount: Int, bytes: Int64, total: Int64?, rate: Double?, why: String? = nil) {
        self.count = count
        self.endedCount = endedCount
        self.bytes = bytes
        self.total = total
        self.rate = rate
        self.why = why
    }

    /// Returns the line with a bar, or without one in a narrow terminal.
    ///
    /// - Parameter width: the width of the terminal, in characters.
    package func bar(width: Int) -> String {
        let text = self.text
        let room = min(40, width - text.count - 4)
        guard let total = self.total, room >= 8 else { return String(text.prefix(max(0, width - 1))) }
        let part = total > 0 ? min(1, max(0, Double(self.bytes) / Double(total))) : 1
        let filled = Int(part * Double(room))
        let head = filled < room ? ">" : ""
        let bar = String(repeating: "=", count: filled) + head
        return "[\(bar)\(String(repeating: " ", count: room - bar.count))] \(text)"
    }

    /// The line without a bar, such as `45 %  12.3 MB of 27.0 MB  3.2 MB/s  5 s left`.
    package var text: String {
        var parts: [String] = []
        if let total = self.total {
            let percent = total > 0 ? min(100, max(0, self.bytes * 100 / total)) : 100
            parts.append("\(percent) %")
            parts.append("\(ByteText.text(self.bytes)) of \(ByteText.text(total))")
        } else {
            parts.append(ByteText.text(self.bytes))
        }
        if let rate = self.rate { parts.append("\(ByteText.text(Int64(rate)))/s") }
        if let total = self.total, let rate = self.rate, rate >= 1, total > self.bytes {
            let seconds = Int(saturating: (Double(total - self.bytes) / rate).rounded(.up))
            parts.append("\(DurationText.text(seconds: seconds)) left")
        }
        if self.count > 1 { parts.append("\(self.endedCount) of \(self.count) ended") }
        if let why = self.why { parts.append(TerminalText.sanitized(why)) }
        return parts.joined(separator: "  ")
    }
}

/// Formats numbers of bytes.
package enum ByteText {
    /// Returns the number in the largest unit in which it is at least 1, such as `12.3 MB`. Units are powers of 1000.
    package static func text(_ bytes: Int64) -> String {
        let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"]
        var (unit, tenths) = (0, max(0, bytes) * (bytes > .max / 10 ? 1 : 10))
        if bytes > .max / 10 { (unit, tenths) = (1, bytes / 100) }
        while tenths >= 10_000, unit < units.count - 1 {
            tenths = (tenths + 500) / 1000
            unit += 1
        }
        return unit == 0 ? "\(tenths / 10) B" : "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}

/// Formats the agent's answers about sessions and transfers.
package enum TransferText {
    /// The names of the states of transfers.
    static let states = BackgroundTransfer.State.allCases.map(\.rawValue)

    /// Returns a line for each transfer, below a line with the column names.
    package static func list(_ transfers: [BackgroundTransfer]) -> String {
        guard !transfers.isEmpty else { return "no transfers\n" }
        let rows = transfers.map { transfer in
            [
                transfer.id.description, transfer.isTaken ? "taken" : transfer.state.rawValue, self.bytes(transfer),
                "\(transfer.attemptCount)", transfer.url, self.remark(transfer),
            ]
        }
        return TableText.lines([["TRANSFER", "STATE", "BYTES", "TRIES", "URL", ""]] + rows)
    }

    private static func bytes(_ transfer: BackgroundTransfer) -> String {
        guard let total = transfer.total, total != transfer.bytes else { return ByteText.text(transfer.bytes) }
        return "\(ByteText.text(transfer.bytes)) of \(ByteText.text(total))"
    }

    /// The reason why a transfer waits or failed; otherwise its note.
    private static func remark(_ transfer: BackgroundTransfer) -> String {
        switch transfer.state {
        case .waiting: transfer.why ?? transfer.note ?? ""
        case .failed: transfer.failure?.description ?? ""
        case .running, .finished, .cancelled: transfer.note ?? ""
        }
    }

    /// Returns a line about an ended transfer.
    package static func ended(_ transfer: BackgroundTransfer) -> String {
        switch transfer.state {
        case .finished: "\(transfer.id) finished, \(ByteText.text(transfer.bytes))"
        case .failed: "\(transfer.id) failed: \(transfer.failure?.description ?? "the agent does not say why")"
        case .cancelled: "\(transfer.id) was cancelled"
        case .waiting, .running: "\(transfer.id) continues"
        }
    }

    /// Returns the settings of a session and the counts of its transfers, one line each.
    package static func session(_ session: JSONValue) -> String {
        let names = [
            "session", "device", "topic", "discretionary", "sendsLaunchEvents", "allowsMetered", "allowsConstrained",
            "continuesAfterForceQuit", "acceptsEarlyAnswers", "requestTimeout", "resourceTimeout", "connectionsPerHost",
        ]
        var rows = names.compactMap { name in session[name].map { [name, self.plain($0)] } }
        for member in session["transfers"]?.members ?? [] { rows.append([member.name, self.plain(member.value)]) }
        return TableText.lines(rows)
    }

    private static func plain(_ value: JSONValue) -> String {
        switch value {
        case .string(let text): text
        case .bool(let flag): flag ? "yes" : "no"
        case .number(let number): number.text
        case .null, .array, .object: "-"
        }
    }

    /// Returns a line for each session, below a line with the column names.
    package static func sessions(_ sessions: [JSONValue]) -> String {
        guard !sessions.isEmpty else { return "no sessions\n" }
        let rows = sessions.map { session in
            let counts = self.states.map { session["transfers"]?[$0].map { self.plain($0) } ?? "-" }
            return [session["session"]?.text ?? "-"] + counts + [session["topic"]?.text ?? "-"]
        }
        return TableText.lines([["SESSION"] + self.states.map { $0.uppercased() } + ["TOPIC"]] + rows)
    }
}
