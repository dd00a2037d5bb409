package import Engine
package import Policy
import Wire

/// What the submission of a request is answered.
package struct SubmittedTask: Hashable, Sendable {
    package let identifier: String
    package let kind: TaskKind
    package let answer: TaskAnswer
    /// Wall clock minus policy time.
    let offset: WallOffset

    package init(identifier: String, kind: TaskKind, answer: TaskAnswer, offset: WallOffset) {
        self.identifier = identifier
        self.kind = kind
        self.answer = answer
        self.offset = offset
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("identifier")
        writer.string(self.identifier)
        writer.key("kind")
        writer.string(self.kind.rawValue)
        writer.key("disposition")
        writer.string(self.answer.disposition.rawValue)
        writer.key("eligibleAt")
        writer.moment(self.answer.eligibleAt, self.offset)
        writer.key("held")
        writer.optional(self.answer.held) { writer, code in writer.string(code.name) }
        writer.endObject()
    }
}
