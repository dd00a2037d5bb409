package import Policy
package import Wire

extension Conditions {
    /// Writes all fields as an object, with the names that reports use.
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        self.writeMembers(to: &writer)
        writer.endObject()
    }

    /// Appends all fields to the open object, with the names that reports use.
    package func writeMembers(to writer: inout JSONWriter) {
        writer.member("appState", self.appState.rawValue)
        writer.member("backgroundRefresh", self.backgroundRefresh.rawValue)
        writer.member("batteryLevel", self.batteryLevel)
        writer.member("charging", self.charging)
        writer.member("lowPowerMode", self.lowPowerMode)
        writer.member("thermalState", self.thermalState.rawValue)
        writer.member("memoryPressure", self.memoryPressure.rawValue)
        writer.member("network", self.network)
    }
}

extension ConditionsReport {
    static let fields = [
        "appState", "backgroundRefresh", "batteryLevel", "charging", "lowPowerMode", "thermalState",
        "memoryPressure", "network",
    ]

    /// The fields as text, such as `charging false, network true`; nil if the report is empty.
    var text: String? {
        let texts = [
            self.appState.map { "appState \($0.rawValue)" },
            self.backgroundRefresh.map { "backgroundRefresh \($0.rawValue)" },
            self.batteryLevel.map { "batteryLevel \(JSONNumber.text(of: $0))" },
            self.charging.map { "charging \($0)" },
            self.lowPowerMode.map { "lowPowerMode \($0)" },
            self.thermalState.map { "thermalState \($0.rawValue)" },
            self.memoryPressure.map { "memoryPressure \($0.rawValue)" },
            self.network.map { "network \($0)" },
        ].compactMap(\.self)
        return texts.isEmpty ? nil : texts.joined(separator: ", ")
    }

    /// Parses a report.
    ///
    /// - Throws: `APIError` with reason `BadCondition`, the field's name, the fault and the valid values.
    package init(_ value: JSONValue) throws(APIError) {
        self.init()
        guard case .object(let members) = value else {
            throw APIError(400, "BadCondition", "The body is not a JSON object; send the fields that changed.")
        }
        for member in members { try self.set(member.name, member.value) }
    }

    private mutating func set(_ field: String, _ value: JSONValue) throws(APIError) {
        switch field {
        case "appState": self.appState = try Self.word(field, value)
        case "backgroundRefresh": self.backgroundRefresh = try Self.word(field, value)
        case "thermalState": self.thermalState = try Self.word(field, value)
        case "memoryPressure": self.memoryPressure = try Self.word(field, value)
        case "charging": self.charging = try Self.flag(field, value)
        case "lowPowerMode": self.lowPowerMode = try Self.flag(field, value)
        case "network": self.network = try Self.flag(field, value)
        case "batteryLevel":
            guard case .number(let level) = value, (0...1).contains(level.double) else {
                throw Self.fault(field, value, "a number from 0 to 1")
            }
            self.batteryLevel = level.double
        default:
            let nearest = NearestMatch.find(field, in: Self.fields).map { "; did you mean \($0)?" } ?? "."
            throw APIError(
                400,
                "BadCondition",
                "\(field) is not a condition\(nearest) Conditions are \(Self.fields.joined(separator: ", "))."
            )
        }
    }

    private static func word<Word: RawRepresentable & CaseIterable>(
        _ field: String,
        _ value: JSONValue
    ) throws(APIError) -> Word where Word.RawValue == String {
        guard case .string(let text) = value, let word = Word(rawValue: text) else {
            let words = Word.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
            throw self.fault(field, value, "one of \(words)")
        }
        return word
    }

    private static func flag(_ field: String, _ value: JSONValue) throws(APIError) -> Bool {
        guard case .bool(let flag) = value else { throw self.fault(field, value, "true or false") }
        return flag
    }

    private static func fault(_ field: String, _ value: JSONValue, _ takes: String) -> APIError {
        APIError(400, "BadCondition", "\(field) is \(value.described); it takes \(takes).")
    }
}
