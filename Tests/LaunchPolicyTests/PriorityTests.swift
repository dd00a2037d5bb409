import LaunchPolicy
import Testing

@Suite("Priority")
struct PriorityTests {
    @Test("Priorities are those of apns-priority, and compare by urgency")
    func order() {
        #expect(Priority.allCases.map(\.rawValue) == [1, 5, 10])
        #expect(Priority.allCases.sorted() == [.passive, .considerate, .immediate])
    }
}
