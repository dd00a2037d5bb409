/// The places where a rule is allowed to be broken, each with its reason. This list should stay short.
enum Exceptions {
    struct Exception {
        let path: String
        /// A part of the violation's message.
        let rule: String
        let reason: String
    }

    static let all: [Exception] = [
        Exception(
            path: "Tests/FuzzTests/Targets/RecordTarget.swift",
            rule: "@testable",
            reason: "it reads the engine's records one by one, which only the engine may do"
        ),
        Exception(
            path: "Sources/Transfers/TransferAgent/Engine/AgentEngine+Commands.swift",
            rule: "CEmbeddedFiles already has its one importing file",
            reason: "the module holds constants without functions, and the gateway reads its document from it as well"
        ),
    ]

    /// Returns the violations that no exception covers.
    static func remaining(_ violations: [Violation], exceptions: [Exception] = Self.all) -> [Violation] {
        violations.filter { violation in
            !exceptions.contains { $0.path == violation.path && violation.message.contains($0.rule) }
        }
    }

    /// Returns the exceptions that no longer cover a violation.
    static func unused(for violations: [Violation], exceptions: [Exception] = Self.all) -> [String] {
        exceptions.filter { exception in
            !violations.contains { $0.path == exception.path && $0.message.contains(exception.rule) }
        }.map { "\($0.path): \($0.rule)" }
    }
}
