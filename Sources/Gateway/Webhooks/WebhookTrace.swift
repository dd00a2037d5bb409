import Bytes
import Text

/// The headers that say which trace a wake belongs to: those of the push whose payload it carries.
enum WebhookTrace {
    private static let mark = Array(#""traceparent":""#.utf8)
    /// The mark begins before: the members that may stand before it, as long as they can be, take 750 bytes.
    private static let markStartMax = 1024

    /// - Parameter wake: the wake's JSON object, as `EffectStage` writes it.
    static func headers(of wake: [UInt8]) -> [(name: String, value: String)] {
        // The member stands before all that a sender chooses; most wakes have none, and are not read any further.
        guard Self.hasMark(wake), let members = JSONMembers(wake) else { return [] }
        return ["traceparent", "tracestate"].compactMap { name in
            let value = members.raw(name).flatMap { try? JSONReader.read(String(decoding: $0, as: UTF8.self)) }
            guard case .string(let text)? = value else { return nil }
            return (name, text)
        }
    }

    private static func hasMark(_ wake: [UInt8]) -> Bool {
        let end = min(wake.count - Self.mark.count, Self.markStartMax)
        return end >= 0 && (0...end).contains { wake[$0] == Self.mark[0] && wake[$0...].starts(with: Self.mark) }
    }
}
