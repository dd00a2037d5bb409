/// What is believed of the members of an event's data: texts, and numbers that can be reckoned with.
extension JSONMembers {
    func value(_ name: String) -> JSONValue? {
        self.raw(name).flatMap { try? JSONReader.read(String(decoding: $0, as: UTF8.self)) }
    }

    func text(_ name: String) -> String? { self.value(name)?.eventText }

    /// The texts of an array; none when it is none.
    func texts(_ name: String) -> [String] {
        guard case .array(let elements)? = self.value(name) else { return [] }
        return elements.compactMap { $0.eventText }
    }

    func integer(_ name: String) -> Int64? { self.value(name)?.eventInteger }

    func instant(_ name: String) -> Int64? {
        self.integer(name).map { max(0, min($0, WakeMessage.instantMax)) }
    }

    func count(_ name: String) -> Int? {
        self.integer(name).map { max(0, min(Int(clamping: $0), WakeMessage.countMax)) }
    }

    func timeLeft() -> Int64? { self.integer("timeLeft").map { WakeTime.believed($0) } }
}

extension JSONValue {
    var eventText: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    var eventInteger: Int64? {
        guard case .number(let number) = self else { return nil }
        return Int64(number.text)
    }
}

/// How much time a wake has, by what its event says.
enum WakeTime {
    static func believed(_ timeLeft: Int64) -> Int64 {
        max(-WakeMessage.timeLeftMax, min(timeLeft, WakeMessage.timeLeftMax))
    }

    /// - `timeLeft`: what the event says is left; nil when it does not say so.
    static func left(_ timeLeft: Int64?, deadline: Int64, wallClock: Int64) -> Int64 {
        if let timeLeft { return timeLeft }
        let (left, isTooMuch) = deadline.subtractingReportingOverflow(wallClock)
        return isTooMuch ? WakeMessage.timeLeftMax : self.believed(left)
    }
}
