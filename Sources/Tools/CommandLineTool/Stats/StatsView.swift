import HTTPClient
import Platform
import Wire

/// What `wakegate stats --watch` shows.
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
        case .event(let event, _): self.model.take(self.event(event))
        case .lost(let cause): self.model.lost(WatchConnection.News.trouble(cause))
        }
    }

    /// What an answer says, in the form of an event of the live stream.
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
        return Array(lines.prefix(max(0, size.height - 1))) + [StyledLine("q quits", .faint)]
    }

    mutating func text() -> String {
        guard case .device = self.subject else {
            return "\(WatchView(self.model, size: Terminal.Size(width: 0, height: 0)).line)\n"
        }
        return self.model.event.map { "\(ExplainText.text($0))\n" } ?? ""
    }
}

/// What is watched: a gateway, one of its topics, or one device.
enum WatchSubject {
    case gateway
    case topic(String)
    case device(String)

    /// The path that is asked again and again; nil for the gateway, which tells by itself.
    var path: String? {
        switch self {
        case .gateway: nil
        case .topic(let topic): "/v1/stats/topics/\(URLPath.component(topic))"
        case .device(let token): "/v1/devices/\(URLPath.component(token))"
        }
    }
}
