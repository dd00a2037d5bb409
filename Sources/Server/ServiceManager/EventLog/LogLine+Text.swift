import Platform
import Wire

extension LogLine {
    /// The line for people: time, level, event, and the fields in the order of their names, a value in quotation marks
    /// wherever it could be taken for something else.
    package var text: String {
        "\(WallTime.text(self.time)) \(self.event.level.rawValue) \(self.message)"
    }

    /// Event and fields.
    package var message: String {
        self.fields.sorted { $0.key < $1.key }.reduce(self.event.rawValue) { line, field in
            "\(line) \(field.key)=\(Self.quoted(field.value))"
        }
    }

    /// The line for programs: one JSON object.
    package var json: String {
        var members = self.fields
        members["time"] = WallTime.text(self.time)
        members["level"] = self.event.level.rawValue
        members["event"] = self.event.rawValue
        var writer = JSONWriter()
        writer.beginObject()
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            writer.key(name)
            writer.string(value)
        }
        writer.endObject()
        return TerminalText.json(writer.buffer.view.string)
    }

    /// What may stand without quotation marks, besides letters and digits of ASCII.
    private static let plain = Set("-_.:/,+@%[]()".unicodeScalars)

    /// The value as it is, or, where that could be misread, in quotation marks with the escapes of JSON: a line feed in
    /// what strangers send begins no new line, and a terminal is told nothing.
    package static func quoted(_ value: String) -> String {
        let isPlain = value.unicodeScalars.allSatisfy { scalar in
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9": true
            default: Self.plain.contains(scalar)
            }
        }
        guard !isPlain || value.isEmpty else { return value }
        var text = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"", "\\": text += "\\\(scalar)"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            default: text += TerminalText.isShown(scalar) ? String(scalar) : TerminalText.escaped(scalar)
            }
        }
        return text + "\""
    }
}
