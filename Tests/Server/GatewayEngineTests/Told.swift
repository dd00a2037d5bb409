import Foundation

/// One thing that the engine let out, in plain words.
struct Told: Hashable, CustomStringConvertible {
    enum Kind: Hashable {
        /// The answer to a push, and to any other request.
        case push, answer
        /// The outlet hands a request to the engine once more.
        case asked
        /// A stream begins.
        case subscribed
        /// A wake, and the notice that one has expired.
        case wake, expired
        /// A wake that a stream held has ended.
        case released
        /// Conditions of a device have changed.
        case conditions
        /// A stream whose worker stops has ended.
        case drained
        case draining
    }

    let kind: Kind
    /// The number of the request or stream it is for.
    var request = 0
    /// As HTTP has it; 0 where there is none.
    var status = 0
    /// A push's disposition or the reason of its refusal; the JSON of everything else.
    var text = ""
    /// Of a push: when its token was removed.
    var timestamp: Int64?

    /// Whether it is the answer that a request waits for.
    var isAnswer: Bool { self.kind == .push || self.kind == .answer || self.kind == .subscribed }

    var description: String { "\(self.kind) \(self.request) \(self.status) \(self.text)" }

    /// The value at a path of keys.
    func value(_ path: [String]) -> Any? {
        var value: Any? = try? JSONSerialization.jsonObject(with: Data(self.text.utf8))
        for key in path { value = (value as? [String: Any])?[key] }
        return value
    }

    func string(_ path: String...) -> String? { self.value(path) as? String }

    func integer(_ path: String...) -> Int64? { (self.value(path) as? NSNumber)?.int64Value }

    /// Everything at a path as one text, in the order of its keys.
    func part(_ path: String...) -> String? {
        guard let value = self.value(path),
            let data = try? JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed])
        else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    /// Of a push's way: its steps, as event, detail and the other push.
    var steps: [[String]] {
        let events = self.value(["events"]) as? [[String: Any]] ?? []
        return events.map { event in
            ["event", "detail", "other"].map { event[$0] as? String ?? "" }
        }
    }

    /// Of an explanation: what happened, the newest first, as event, apns-id and detail.
    var recent: [[String]] {
        let events = self.value(["recent"]) as? [[String: Any]] ?? []
        return events.map { event in
            ["event", "apnsID", "detail"].map { event[$0] as? String ?? "" }
        }
    }
}
