package import Wire

extension JSONValue {
    /// The value as JSON text.
    package var written: String {
        var writer = JSONWriter()
        self.write(to: &writer)
        return writer.buffer.view.string
    }

    private func write(to writer: inout JSONWriter) {
        switch self {
        case .null: writer.null()
        case .bool(let value): writer.bool(value)
        case .number(let value): value.text.withByteView { writer.raw($0) }
        case .string(let value): writer.string(value)
        case .array(let values):
            writer.beginArray()
            for value in values { value.write(to: &writer) }
            writer.endArray()
        case .object(let members):
            writer.beginObject()
            for member in members {
                writer.key(member.name)
                member.value.write(to: &writer)
            }
            writer.endObject()
        }
    }

    /// Returns this fault rule with the seed of its random choices in `when`, so that a run can be repeated. A rule
    /// without random choices is returned unchanged.
    package func adding(seed occasion: FaultOccasion) -> JSONValue {
        guard occasion.probability < 1, case .object(let members) = self else { return self }
        return .object(
            members.map { member in
                guard member.name == "when", case .object(let conditions) = member.value else { return member }
                let seed = JSONMember(name: "seed", value: .number(JSONNumber(Double(occasion.seed))))
                let others = conditions.filter { $0.name != "seed" }
                return JSONMember(name: "when", value: .object(others + [seed]))
            }
        )
    }
}
