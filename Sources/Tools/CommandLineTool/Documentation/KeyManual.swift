/// A key of the configuration as the help and the manual explain it.
package struct KeyManual: Sendable {
    package let name: String
    /// What the key is for.
    package let summary: String
    /// What the value must be.
    package let requirement: String
    /// The value when nothing is set; nil where there is none.
    package let defaultText: String?

    package init(name: String, summary: String, requirement: String, defaultText: String?) {
        self.name = name
        self.summary = summary
        self.requirement = requirement
        self.defaultText = defaultText
    }

    /// The key in the help of a command.
    package var help: String {
        let value = "      \(self.requirement)\n"
        let remark = self.defaultText.map { "      default: \($0)" } ?? "      no default"
        return "  \(self.name): \(self.summary)\n\(value)\(remark)"
    }
}
