/// How far a continued task is.
package struct TaskProgress: Hashable, Sendable {
    package let completed: Int64
    package let total: Int64
    package let title: String?
    package let subtitle: String?

    package init(completed: Int64, total: Int64, title: String? = nil, subtitle: String? = nil) {
        self.completed = completed
        self.total = total
        self.title = title
        self.subtitle = subtitle
    }

    /// The body of a report.
    package var json: [UInt8] {
        var members = ["\"completed\":\(self.completed)", "\"total\":\(self.total)"]
        if let title = self.title { members.append("\"title\":\(JSONText.string(title))") }
        if let subtitle = self.subtitle { members.append("\"subtitle\":\(JSONText.string(subtitle))") }
        return Array("{\(members.joined(separator: ","))}".utf8)
    }
}
