import FoundationEssentials
import HTTPClient
import Platform
import Wire

/// A drawing of a model as lines for a terminal.
package struct WatchView: Sendable {
    private let model: WatchModel
    private let size: Terminal.Size

    package init(_ model: WatchModel, size: Terminal.Size) {
        self.model = model
        self.size = size
    }

    private static let labelWidth = 11
    private static let valueWidth = 9
    /// The fraction of the execution window after which a running wake is highlighted.
    private static let lateShare = 0.5

    /// The lines of the view, no more than the terminal has rows.
    package var lines: [StyledLine] {
        var lines = [self.head]
        if let trouble = self.model.trouble { lines.append(StyledLine(trouble, .bad)) }
        guard self.model.event != nil else {
            return self.size.framed(lines + [StyledLine("waiting for the gateway", .faint)])
        }
        lines.append(StyledLine())
        lines += self.rates + [self.results] + self.tasks + [self.holds] + self.limits
        // The last line and an empty line above each of the two tables also need rows.
        let rest = self.size.height - lines.count - 3
        let topics = self.topicRows
        let workers = self.workerRows
        let workerShare = min(workers.count, max(rest / 2, rest - topics.count))
        let topicShare = min(topics.count, rest - workerShare)
        lines += Self.table(topics, of: self.model.event?["topics"]?["count"]?.number, rows: topicShare)
        lines += Self.table(workers, of: self.model.event?["streams"]?["count"]?.number, rows: workerShare)
        return self.size.framed(lines)
    }

    // MARK: Head

    private var head: StyledLine {
        var line = StyledLine("WakeGate ", .strong)
        line.append("\(self.model.title)  ")
        guard let event = self.model.event else { return line }
        let time = TimeText.instant(event["at"]?.number ?? 0)
        if self.model.trouble != nil {
            line.append("gone, last heard of at \(time)", .bad)
            return line
        }
        if let gateway = event["gateway"] {
            let state = gateway["state"]?.text ?? ""
            line.append(state, state == "ready" ? .good : state == "draining" ? .warning : .bad)
            let uptime = DurationText.text(seconds: Int(saturating: gateway["uptime"]?.number ?? 0))
            let memory = Int(saturating: (gateway["memory"]?.number ?? 0) / 1_000_000)
            line.append("  up \(uptime)  \(Self.count(gateway["connections"])) connections  \(memory) MB", .faint)
            line.append("  \(self.accounts(event))", .faint)
        }
        line.append("  \(time)", .faint)
        if let problem = event["gateway"]?["problem"]?.text { line.append("  \(problem)", .bad) }
        return line
    }

    /// Returns a text that balances the accepted pushes against their outcomes.
    private func accounts(_ event: JSONValue) -> String {
        let pushes = event["stats"]?["pushes"] ?? .null
        let discarded = Self.total(pushes["discarded"])
        let parts = ["completed", "coalesced", "pending", "inFlight"].map { pushes[$0]?.number ?? 0 }
        let missing = (pushes["accepted"]?.number ?? 0) - parts.reduce(0, +) - discarded
        return missing == 0 ? "all pushes accounted for" : "\(Self.text(missing)) pushes amiss"
    }

    // MARK: Rates

    private var rates: [StyledLine] {
        let stats = self.model.event?["stats"] ?? .null
        let (pushes, wakes, workers) = (stats["pushes"] ?? .null, stats["wakes"] ?? .null, stats["workers"] ?? .null)
        let shares = zip(self.model.rates(of: .coalesced), self.model.rates(of: .completed)).map { parts -> Double? in
            guard let coalesced = parts.0, let completed = parts.1, coalesced + completed > 0 else { return nil }
            return coalesced / (coalesced + completed)
        }
        let perLaunch = stats["pushesPerLaunch"]?.number ?? 0
        let perLaunchText = StatsText.pushesPerLaunch(stats)
        let connected = workers["connected"]?.number ?? 0
        let slots =
            "\(Self.count(pushes["inFlight"])) in flight, \(Self.count(workers["busy"])) of "
            + "\(Self.count(workers["slots"])) slots busy, \(Self.text(connected)) worker\(connected == 1 ? "" : "s")"
        return [
            self.rate("pushes", .accepted, .first, "\(Self.count(pushes["accepted"])) accepted"),
            self.rate("launches", .launched, .second, "\(Self.count(wakes["launched"])) launched"),
            self.row(
                "coalesced",
                shares.last.flatMap(\.self).map { "\(Int(saturating: $0 * 100 + 0.5)) %" } ?? "-",
                Sparkline.text(shares, width: self.sparkWidth, maximum: 1),
                .first,
                perLaunch < 1
                    ? StatsText.fewPushesPerLaunch(stats)
                    : "\(perLaunchText) push\(perLaunch == 1 ? "" : "es") a launch"
            ),
            self.rate("refused", .rejected, .bad, Self.sum(pushes["rejected"])),
            self.row(
                "waiting",
                Self.count(pushes["pending"]),
                Sparkline.text(self.model.samples.map { $0[.pending] }, width: self.sparkWidth),
                .warning,
                slots
            ),
        ]
    }

    private var sparkWidth: Int { min(120, max(8, self.size.width - Self.labelWidth - Self.valueWidth - 52)) }

    private func rate(
        _ name: String,
        _ counter: WatchSample.Field,
        _ style: StyledLine.Style,
        _ note: String
    ) -> StyledLine {
        let spark = Sparkline.text(self.model.rates(of: counter), width: self.sparkWidth)
        return self.row(name, self.model.rate(of: counter).map { "\(Self.rate($0))/s" } ?? "-", spark, style, note)
    }

    private func row(
        _ name: String,
        _ value: String,
        _ spark: String,
        _ style: StyledLine.Style,
        _ note: String
    ) -> StyledLine {
        var line = StyledLine()
        line.append(column: name, Self.labelWidth, .faint)
        line.append(column: value, Self.valueWidth, .strong, isNumber: true)
        line.append(" \(spark) ", style)
        line.append(" \(note)")
        return line
    }

    // MARK: Counts

    private var results: StyledLine {
        let styles: [String: StyledLine.Style] = ["newData": .good, "failed": .warning, "expired": .bad, "lost": .bad]
        return self.counts(
            "results",
            self.model.event?["stats"]?["wakes"]?["results"],
            styles,
            none: "no wake has ended"
        )
    }

    /// The lines of background tasks and finished transfers, with their pending, running and ended counts. Empty if
    /// there were no tasks or transfers.
    private var tasks: [StyledLine] {
        let styles: [String: StyledLine.Style] = [
            "success": .good, "failure": .warning, "expired": .bad, "lost": .bad, "interrupted": .warning,
        ]
        return [("tasks", "running"), ("sessions", "in flight")].compactMap { name, running in
            guard let counters = self.model.event?["stats"]?[name], StatsText.isAnything(counters) else { return nil }
            var line = StyledLine()
            line.append(column: name, Self.labelWidth, .faint)
            line.append("\(Self.count(counters["waiting"])) waiting, \(Self.count(counters["inFlight"])) \(running)   ")
            Self.append(counters["results"], styles, to: &line)
            let refused = counters["refused"]?.number ?? Self.total(counters["refused"])
            if refused != 0 { line.append("refused \(Self.text(refused))", .bad) }
            return line
        }
    }

    private var holds: StyledLine {
        let held = self.model.event?["stats"]?["devices"]?["held"]
        return self.counts("held", held, ["paused": .bad, "worker": .bad], other: .warning, none: "nothing")
    }

    private var limits: [StyledLine] {
        guard let limits = self.model.event?["stats"]?["limits"], !limits.members.isEmpty else { return [] }
        return [self.counts("bounds met", limits, [:], none: "none")]
    }

    private func counts(
        _ name: String,
        _ counters: JSONValue?,
        _ styles: [String: StyledLine.Style],
        other: StyledLine.Style = .plain,
        none: String
    ) -> StyledLine {
        var line = StyledLine()
        line.append(column: name, Self.labelWidth, .faint)
        if Self.append(counters, styles, other: other, to: &line) == 0 { line.append(none, .faint) }
        return line
    }

    /// Appends the nonzero counters in descending order.
    ///
    /// - Returns: the number of nonzero counters.
    @discardableResult
    private static func append(
        _ counters: JSONValue?,
        _ styles: [String: StyledLine.Style],
        other: StyledLine.Style = .plain,
        to line: inout StyledLine
    ) -> Int {
        let members = (counters ?? .null).members.filter { ($0.value.number ?? 0) != 0 }
        for member in members.sorted(by: { ($0.value.number ?? 0) > ($1.value.number ?? 0) }) {
            line.append("\(member.name) ", styles[member.name] ?? other)
            line.append("\(self.count(member.value))   ")
        }
        return members.count
    }

    // MARK: Tables

    private var nameWidth: Int { min(44, max(16, self.size.width - 66)) }

    private var topicRows: [StyledLine] {
        let topics = self.model.event?["topics"]?["listed"]?.elements ?? []
        guard !topics.isEmpty else { return [] }
        let heads = ["devices", "pushes/s", "launches/s", "waiting", "no slot", "slots busy"]
        var rows = [self.tableHead("topic", heads)]
        for topic in topics {
            let rates = self.model.rates("topic \(topic["topic"]?.text ?? "")")
            var line = StyledLine()
            line.append(column: topic["topic"]?.text ?? "", self.nameWidth)
            line.append(column: Self.count(topic["devices"]), 10, isNumber: true)
            line.append(column: rates.map { Self.rate($0[0]) } ?? "-", 10, isNumber: true)
            line.append(column: rates.map { Self.rate($0[1]) } ?? "-", 10, isNumber: true)
            line.append(column: Self.count(topic["pending"]), 10, isNumber: true)
            let waiting = topic["waiting"]?.number ?? 0
            line.append(column: Self.text(waiting), 10, waiting > 0 ? .bad : .plain, isNumber: true)
            line.append(column: "\(Self.count(topic["busy"]))/\(Self.count(topic["slots"]))", 10, isNumber: true)
            rows.append(line)
        }
        return rows
    }

    private var workerRows: [StyledLine] {
        let streams = self.model.event?["streams"]?["listed"]?.elements ?? []
        guard !streams.isEmpty else { return [] }
        var rows = [self.tableHead("worker", ["slots busy", "wakes/s", "wakes", "oldest", "state"], last: "topic")]
        for stream in streams {
            let place = stream["stream"]?.text ?? ""
            let name = stream["name"]?.text ?? ""
            let state = stream["state"]?.text ?? ""
            var line = StyledLine()
            line.append(column: name.isEmpty ? "stream \(place)" : name, self.nameWidth)
            line.append(column: "\(Self.count(stream["busy"]))/\(Self.count(stream["slots"]))", 10, isNumber: true)
            line.append(column: self.model.rates("stream \(place)").map { Self.rate($0[0]) } ?? "-", 10, isNumber: true)
            line.append(column: Self.count(stream["wakes"]), 10, isNumber: true)
            let lag = stream["lag"]?.number
            let isLate = (lag ?? 0) > (stream["executionWindow"]?.number ?? .infinity) * Self.lateShare
            line.append(column: lag.map { Self.lag($0) } ?? "-", 10, isLate ? .bad : .plain, isNumber: true)
            let isGood = state == "free" || state == "busy"
            line.append(column: state, 10, isGood ? .good : .bad, isNumber: true)
            line.append(stream["topic"]?.text ?? "", .faint)
            rows.append(line)
        }
        return rows
    }

    private func tableHead(_ name: String, _ columns: [String], last: String = "") -> StyledLine {
        var line = StyledLine()
        line.append(column: name.uppercased(), self.nameWidth, .faint)
        for column in columns { line.append(column: column.uppercased(), 10, .faint, isNumber: true) }
        line.append(last.uppercased(), .faint)
        return line
    }

    /// Returns an empty line and a table of at most `rows` lines. If rows are left out, the last line contains their
    /// number.
    private static func table(_ lines: [StyledLine], of count: Double?, rows: Int) -> [StyledLine] {
        guard lines.count > 1, rows > 1 else { return [] }
        let total = max(Int(saturating: count ?? 0), lines.count - 1)
        guard total > rows - 1 || lines.count > rows else { return [StyledLine()] + lines }
        let shown = lines.prefix(rows - 1)
        return [StyledLine()] + shown + [StyledLine("and \(total - shown.count + 1) more", .faint)]
    }
}

// MARK: - Numbers

extension WatchView {
    static func text(_ number: Double) -> String {
        let digits = JSONNumber.text(of: number)
        return Int(digits).map(SizeText.grouped) ?? digits
    }

    static func count(_ value: JSONValue?) -> String { value?.number.map { self.text($0) } ?? "-" }

    static func rate(_ value: Double) -> String {
        value >= 10 || value < 0.005 ? self.text(value.rounded()) : JSONNumber.text(of: (value * 100).rounded() / 100)
    }

    /// Formats a duration in milliseconds, such as `350 ms`, `12 s` or `3 min 2 s`.
    static func lag(_ milliseconds: Double) -> String {
        milliseconds < 1000
            ? "\(Int(saturating: milliseconds)) ms"
            : DurationText.text(seconds: Int(saturating: milliseconds / 1000))
    }

    /// Returns the sum of counters.
    static func total(_ counters: JSONValue?) -> Double {
        (counters ?? .null).members.reduce(0) { $0 + ($1.value.number ?? 0) }
    }

    /// Returns the nonzero counters by name, the largest first.
    static func sum(_ counters: JSONValue?) -> String {
        let members = (counters ?? .null).members.filter { ($0.value.number ?? 0) != 0 }
        let parts = members.sorted { ($0.value.number ?? 0) > ($1.value.number ?? 0) }.map {
            "\($0.name) \(self.count($0.value))"
        }
        return parts.isEmpty ? "none" : parts.joined(separator: ", ")
    }
}

// MARK: - One line

extension WatchView {
    /// The whole state in one line, for output that is not a terminal.
    package var line: String {
        guard self.model.trouble == nil, let event = self.model.event else {
            return self.model.trouble ?? "waiting for the gateway"
        }
        let stats = event["stats"] ?? .null
        let counters = [("pushes/s", WatchSample.Field.accepted), ("launches/s", .launched), ("refused/s", .rejected)]
        let rates = counters.map { "\($0.0) \(self.model.rate(of: $0.1).map { Self.rate($0) } ?? "-")" }
        let held = Self.sum(stats["devices"]?["held"])
        let parts =
            [TimeText.instant(event["at"]?.number ?? 0)] + rates + [
                "waiting \(Self.count(stats["pushes"]?["pending"]))",
                "inFlight \(Self.count(stats["pushes"]?["inFlight"]))",
                "busy \(Self.count(stats["workers"]?["busy"]))/\(Self.count(stats["workers"]?["slots"]))",
                "held \(held)",
            ] + self.taskCounts(stats) + (event["gateway"]?["state"]?.text.map { ["state \($0)"] } ?? [])
        return parts.joined(separator: "  ")
    }

    /// Returns the counts of pending and running tasks; empty if there were no tasks.
    private func taskCounts(_ stats: JSONValue) -> [String] {
        guard let tasks = stats["tasks"], StatsText.isAnything(tasks) else { return [] }
        return ["tasks waiting \(Self.count(tasks["waiting"]))", "running \(Self.count(tasks["inFlight"]))"]
    }
}

/// Draws values as a row of bars.
package enum Sparkline {
    private static let bars: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

    /// Draws the last `width` values as bars. The highest bar represents the greatest value, and a space a missing
    /// value.
    ///
    /// - `maximum`: the value that the highest bar represents; nil for the greatest value.
    package static func text(_ values: [Double?], width: Int, maximum: Double? = nil) -> String {
        let shown = values.suffix(max(0, width))
        let highest = maximum ?? shown.compactMap(\.self).max() ?? 0
        let text = shown.map { value -> Character in
            guard let value else { return " " }
            guard highest > 0, value > 0 else { return self.bars[0] }
            let height = Int(saturating: value / highest * Double(self.bars.count - 1) + 0.5)
            return self.bars[min(self.bars.count - 1, height)]
        }
        return String(repeating: " ", count: max(0, width - text.count)) + String(text)
    }
}

/// The view of `wakegate stats --watch`.
struct StatsView: WatchedView {
    private let subject: WatchSubject
    private var model: WatchModel

    init(_ subject: WatchSubject, place: String) {
        self.subject = subject
        switch subject {
        case .gateway, .device: self.model = WatchModel(title: place)
        case .topic(let topic): self.model = WatchModel(title: "\(place)  topic \(topic)")
        }
    }

    mutating func take(_ news: WatchConnection.News) {
        switch news {
        case .past(let answer): self.model.past(answer)
        case .opened: break
        case .event(_, let event): self.model.take(self.event(event))
        case .lost(let cause, _): self.model.lost(WatchConnection.News.trouble(cause))
        }
    }

    /// Converts an answer to the structure of an event of `/v1/live`.
    private func event(_ answer: JSONValue) -> JSONValue {
        switch self.subject {
        case .gateway, .device: answer
        case .topic:
            .object([
                JSONMember(name: "at", value: .number(JSONNumber(Double(SystemClock.wall)))),
                JSONMember(name: "stats", value: answer),
            ])
        }
    }

    func lines(_ size: Terminal.Size) -> [StyledLine] {
        guard case .device = self.subject else { return WatchView(self.model, size: size).lines }
        let text = self.model.event.map { ExplainText.text($0) } ?? ""
        var lines = WrappedText.lines(text, width: size.width).map { StyledLine($0) }
        if let trouble = self.model.trouble { lines.insert(StyledLine(trouble, .bad), at: 0) }
        return size.framed(lines)
    }

    mutating func text() -> String {
        guard case .device = self.subject else {
            return "\(WatchView(self.model, size: Terminal.Size(width: 0, height: 0)).line)\n"
        }
        return self.model.event.map { "\(ExplainText.text($0))\n" } ?? ""
    }
}

/// The subject of a view: a gateway, one of its topics, or one device.
enum WatchSubject {
    case gateway
    case topic(String)
    case device(String)

    var source: WatchConnection.Source {
        switch self {
        case .gateway: .live
        case .topic(let topic): .poll("/v1/stats/topics/\(URLPath.component(topic))")
        case .device(let token): .poll("/v1/devices/\(URLPath.component(token))")
        }
    }
}
