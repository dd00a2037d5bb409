import Foundation

/// The server-sent events a curl process shows.
final class EventStream {
    struct Event {
        let name: String
        let id: String?
        let data: [String: Any]
    }

    let process: ChildProcess

    init(_ process: ChildProcess) {
        self.process = process
    }

    /// The next event; comments are passed over. Nil when the stream has ended.
    func next(within seconds: Double = 20) throws -> Event? {
        var name = "message"
        var id: String?
        var data: [String] = []
        while let line = try self.process.line(within: seconds) {
            if line.isEmpty {
                guard !data.isEmpty else { continue }
                let text = data.joined(separator: "\n")
                let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
                return Event(name: name, id: id, data: object ?? [:])
            }
            guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else { continue }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            switch line[..<colon] {
            case "event": name = value
            case "id": id = value
            case "data": data.append(value)
            default: break
            }
        }
        return nil
    }
}
