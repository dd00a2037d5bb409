/// A setting of a session, in force from its first moment and above those of the user and of the database.
package struct PostgresSetting: Hashable, Sendable {
    package let name: String
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// As an argument of the server, in which a space ends the argument.
    var argument: String {
        let value = self.value.reduce(into: "") { text, character in
            if character == " " || character == "\\" { text.append("\\") }
            text.append(character)
        }
        return "-c \(self.name)=\(value)"
    }
}
