import Platform
import Wire

// MARK: - The member `when` of a rule

extension FaultRuleReader {
    private static let keys = [
        "token", "topic", "keyID", "pushType", "priority", "nth", "first", "from", "to", "every", "probability", "seed",
        "per",
    ]

    private enum Count: String, CaseIterable {
        case device, all
    }

    mutating func readWhen(_ value: JSONValue?, _ path: String, into rule: inout FaultRule) {
        guard let value else { return }
        let members = self.members(of: value, path, Self.keys)
        rule.condition = self.condition(members, path)
        rule.occasion = self.occasion(members, path)
        rule.isPerDevice = self.choice(members["per"], Self.join(path, "per"), Count.self, \.rawValue) == .device
    }

    private mutating func condition(_ members: [String: JSONValue], _ path: String) -> FaultCondition {
        var condition = FaultCondition()
        let tokens = "a device token, 32 to 200 hexadecimal digits, or a list of them"
        condition.tokens = self.list(members["token"], Self.join(path, "token"), tokens) { value in
            value.text.flatMap { $0.withByteView { DeviceToken(hex: $0) } }
        }
        let topics = "a topic such as \"com.example.app\", or a list of them"
        condition.topics = self.list(members["topic"], Self.join(path, "topic"), topics) { value in
            value.text.flatMap { topic in topic.withByteView { Push.isTopic($0) } ? topic : nil }
        }
        let keys = "the id of a provider's key, or a list of them"
        condition.keyIDs = self.list(members["keyID"], Self.join(path, "keyID"), keys) { value in
            value.text.flatMap { $0.isEmpty ? nil : $0 }
        }
        let names = PushType.allCases.map { "\($0.name)" }.joined(separator: ", ")
        condition.types = self.list(members["pushType"], Self.join(path, "pushType"), "one of \(names)") { value in
            value.text.flatMap { $0.withByteView { PushType($0) } }
        }
        condition.priorities = self.list(members["priority"], Self.join(path, "priority"), "10, 5 or 1") { value in
            guard case .number(let number) = value else { return nil }
            return number.text.withByteView { Priority($0) }
        }
        return condition
    }

    private mutating func occasion(_ members: [String: JSONValue], _ path: String) -> FaultOccasion {
        var occasion = FaultOccasion()
        let ordinals = 1...1_000_000_000
        func ordinal(_ name: String) -> UInt64? {
            self.whole(members[name], Self.join(path, name), ordinals).map { UInt64($0) }
        }
        if let nth = ordinal("nth") { (occasion.from, occasion.to) = (nth, nth) }
        if let from = ordinal("from") { occasion.from = from }
        if let to = ordinal("to") ?? ordinal("first") { occasion.to = to }
        if let every = ordinal("every") { occasion.every = every }
        let exclusive = [("nth", ["first", "from", "to", "every"]), ("first", ["from", "to"])]
        for (name, others) in exclusive where members[name] != nil {
            guard let other = others.first(where: { members[$0] != nil }) else { continue }
            self.fault(path, "has \(name) and \(other)", "write one of them")
        }
        if let to = occasion.to, to < occasion.from {
            self.fault(Self.join(path, "to"), "is less than from", "write from: \(to), to: \(occasion.from)")
        }
        if let value = members["probability"] {
            if case .number(let number) = value, number.double > 0, number.double <= 1 {
                occasion.probability = number.double
                // A seed of 32 bits, because every JSON parser preserves it exactly.
                var random = RandomBits()
                occasion.seed = UInt64.random(in: 0...UInt64(UInt32.max), using: &random)
            } else {
                let remedy = "write a number above 0, at most 1"
                self.fault(Self.join(path, "probability"), "is \(value.described)", remedy)
            }
        }
        if let seed = self.whole(members["seed"], Self.join(path, "seed"), 0...9_007_199_254_740_991) {
            occasion.seed = UInt64(seed)
            if members["probability"] == nil {
                self.fault(Self.join(path, "seed"), "stands without probability", "add probability: 0.1")
            }
        }
        return occasion
    }
}
