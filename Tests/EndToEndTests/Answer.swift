import Foundation

/// The last response that curl received: its status, header fields and body.
struct Answer {
    let status: Int
    /// The header fields by lowercase name. Of repeated fields, the last one counts.
    let headers: [String: String]
    let body: String

    /// Reads the output of `curl --include`.
    init(curlOutput: String) throws {
        let text = curlOutput.replacingOccurrences(of: "\r\n", with: "\n")
        guard let end = text.range(of: "\n\n") else { throw ChildProcess.Failure(description: "no response: \(text)") }
        let lines = text[..<end.lowerBound].split(separator: "\n")
        guard let status = lines[0].split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
            throw ChildProcess.Failure(description: "no status: \(lines[0])")
        }
        self.status = status
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(
                in: .whitespaces
            )
        }
        self.headers = headers
        self.body = String(text[end.upperBound...])
    }

    /// Sends a request with curl, which must receive an answer.
    static func curl(_ arguments: [String]) throws -> Answer {
        let ended = try ChildProcess.run("curl", ["--include"] + arguments)
        guard ended.status == 0 else { throw ChildProcess.Failure(description: "curl: \(ended.errors)") }
        return try Answer(curlOutput: ended.output)
    }

    private var object: Any? { try? JSONSerialization.jsonObject(with: Data(self.body.utf8)) }

    /// Returns the value at a path of keys in the JSON body.
    func value(_ path: String...) -> Any? { Self.value(at: path, in: self.object) }

    func integer(_ path: String...) -> Int? { (Self.value(at: path, in: self.object) as? NSNumber)?.intValue }

    /// Returns the value at a path as text, with sorted keys.
    func part(_ path: String...) -> String? { Self.text(Self.value(at: path, in: self.object)) }

    /// Returns the value at a path of keys in a JSON value.
    static func value(at path: [String], in object: Any?) -> Any? {
        path.reduce(object) { ($0 as? [String: Any])?[$1] }
    }

    /// Formats a JSON value with sorted keys.
    static func text(_ value: Any?) -> String? {
        guard let value,
            let data = try? JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed])
        else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    var reason: String? { self.value("reason") as? String }
}

/// The server-sent events that a curl process prints.
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

    /// Returns the next event; nil after the end of the stream. Comments are skipped.
    func next(within seconds: Double = 60) throws -> Event? {
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
