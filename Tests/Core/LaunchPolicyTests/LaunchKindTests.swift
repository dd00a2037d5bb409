import Policy
import Testing

@Suite("What wakes are launched for")
struct LaunchKindTests {
    @Test("Pushes and the kinds of tasks are all there is, each by its name on the wire")
    func names() {
        let names = LaunchKind.allCases.map(\.rawValue)
        #expect(names == ["push", "appRefresh", "processing", "continued", "urlSession"])
        #expect(LaunchKind.allCases.compactMap(\.task) == TaskKind.allCases)
        #expect(TaskKind.allCases.map { LaunchKind($0).rawValue } == TaskKind.allCases.map(\.rawValue))
        #expect(LaunchKind.allCases.map(\.lane) == [.short, .short, .processing, .continued, .short])
    }

    @Test("An outcome knows what its wake was launched for, and its name")
    func outcomes() {
        #expect(LaunchOutcome.push(.newData).kind == .push && LaunchOutcome.push(.newData).name == "newData")
        let session = LaunchOutcome.task(.urlSession, .failure)
        #expect(session.kind == .urlSession && session.name == "failure")
        #expect(session != .task(.appRefresh, .failure))
    }
}
