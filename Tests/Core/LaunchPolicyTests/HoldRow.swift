import Policy
import Testing

/// What a device has reported, and which hold is the first for each of those that want to wake it.
struct HoldRow: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let report: ConditionsReport
    /// In the order of the table's own columns; nil for none.
    let holds: [Hold?]

    init(_ name: String, _ holds: [Hold?], _ change: (inout ConditionsReport) -> Void) {
        var report = ConditionsReport()
        change(&report)
        self.testDescription = name
        self.report = report
        self.holds = holds
    }
}
