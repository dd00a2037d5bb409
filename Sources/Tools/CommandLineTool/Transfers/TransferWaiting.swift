import BackgroundTransfers
import Glibc
import HTTPClient
import Platform

/// Waits for the ends of transfers, and shows meanwhile how far they are: with a bar in a terminal, a line a second
/// elsewhere, or each event in JSON.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards every field that changes.
final class TransferWaiting: @unchecked Sendable {
    /// How progress is shown.
    enum Display: Sendable {
        case bar, lines, json

        /// By the command line, and by where standard error goes.
        init(_ parsed: ParsedCommand) {
            self = parsed.isSet("--json") ? .json : isatty(STDERR_FILENO) == 1 ? .bar : .lines
        }

        /// How often it is shown, in milliseconds.
        var interval: Int64 { self == .bar ? 250 : 1000 }
    }

    private struct State {
        var transfers: [BackgroundTransferID: BackgroundTransfer] = [:]
        var bytes: [BackgroundTransferID: BackgroundTransferProgress] = [:]
        var meter = TransferMeter()
    }

    private let session: BackgroundSession
    private let display: Display
    /// The transfers that are waited for; nil for all of the session.
    private let wanted: Set<BackgroundTransferID>?
    private let monitor = Monitor()
    private var state = State()

    init(_ session: BackgroundSession, _ wanted: Set<BackgroundTransferID>?, _ display: Display) {
        self.session = session
        self.wanted = wanted
        self.display = display
    }

    /// Waits for all of them.
    ///
    /// - Returns: the transfers as they ended, in the order in which they were added.
    func run() async throws(BackgroundTransferError) -> [BackgroundTransfer] {
        let listed = try await self.session.transfers()
        let known = Set(listed.map(\.id))
        if let stranger = self.wanted?.first(where: { !known.contains($0) }) {
            _ = try await self.session.transfer(stranger)
        }
        self.withState { state in
            for transfer in listed where self.wanted?.contains(transfer.id) ?? true {
                state.transfers[transfer.id] = transfer
                state.bytes[transfer.id] = transfer.progress
            }
        }
        if self.display == .json { self.tellWhatIsThere(listed) }
        let showing = Task { await self.show() }
        defer { showing.cancel() }
        try await self.follow()
        showing.cancel()
        await showing.value
        self.draw(isLast: true)
        let ended = self.withState { $0.transfers }
        return listed.compactMap { ended[$0.id] }
    }

    private func withState<Result>(_ body: (inout State) -> Result) -> Result {
        self.monitor.withLock { body(&self.state) }
    }

    /// What no event may tell any more: how far a transfer is that rests, and the end of a named one that has ended.
    private func tellWhatIsThere(_ listed: [BackgroundTransfer]) {
        for transfer in listed where self.wanted?.contains(transfer.id) ?? !transfer.state.isEnd {
            let line = transfer.state.isEnd ? TransferJSON.ended(transfer) : TransferJSON.progress(transfer.progress)
            Console.out(json: line)
        }
    }

    private var isOver: Bool { self.withState { $0.transfers.values.allSatisfy(\.state.isEnd) } }

    private func follow() async throws(BackgroundTransferError) {
        guard !self.isOver else { return }
        var events = self.session.allEvents.makeAsyncIterator()
        while let event = try await events.next(isolation: nil) {
            switch event {
            case .progress(let progress):
                let isWanted = self.withState { state in
                    guard let transfer = state.transfers[progress.transfer], !transfer.state.isEnd else { return false }
                    state.bytes[progress.transfer] = progress
                    return true
                }
                if isWanted, self.display == .json { Console.out(json: TransferJSON.progress(progress)) }
            case .finished(let transfer), .failed(let transfer), .cancelled(let transfer): self.ended(transfer)
            case .idle: ()
            }
            if self.isOver { return }
        }
    }

    private func ended(_ transfer: BackgroundTransfer) {
        let isNew = self.withState { state in
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
        return self.withState { state in
            let all = state.bytes.values
            let bytes = all.reduce(Int64(0)) { $0 &+ $1.bytes }
            let totals = all.compactMap(\.total)
            state.meter.noted(bytes, at: now)
            let rate = state.meter.rate(at: now)
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

/// What is told of a transfer, a JSON object a line.
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
