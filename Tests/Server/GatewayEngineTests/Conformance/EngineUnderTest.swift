import Engine
import Gateway
import Testing

/// What an engine is made with in these tests.
struct EngineSetting {
    let configuration: EngineConfiguration
    /// Clocks that the test moves, and chance from a seed.
    let world: EngineWorld
    /// Where the engine leaves what happens, for those who follow it.
    let events = EventDesk()
}

/// An engine that is held to the contract of `GatewayEngine`, and what surrounds it.
///
/// The suites of this folder are that contract, as providers, workers and operators see it: what goes in is a
/// `CommandBatch`, what is judged is what lies in the mailbox of a loop afterwards, as values. No test knows more of an
/// engine than this protocol says.
///
/// An implementation joins with a type that conforms to it and with an `EngineKind` in `EngineKind.all`, one for each
/// way in which it may be set up. Everything else follows: every test of the folder runs for it. It has one loop, and a
/// history that answers what it is asked. It reads no clock but those of its setting, and does nothing while it is not
/// called: what it does on other threads is over when `commit` returns.
protocol EngineUnderTest: AnyObject {
    var engine: any GatewayEngine { get }

    /// Where the engine leaves what it has for its only loop.
    var loop: LoopMailbox { get }

    /// Waits until nothing is being made durable, and whatever was is in the mailbox. An engine that commits when the
    /// test says so commits here.
    func commit()

    /// Nothing of what it was asked for is under way.
    var isIdle: Bool { get }

    /// Nothing of the next commit becomes durable, and the engine learns that it failed.
    func failNextCommit()

    /// The process dies, and another one starts on what was durable. The old engine is called no more.
    ///
    /// - Throws: when it does not start.
    func restart() throws
}

extension EngineUnderTest {
    /// What an engine that has its store to itself was asked for is under way no longer than one commit and one step.
    var isIdle: Bool { true }
}

/// One way to set up an engine.
struct EngineKind: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// What was durable is there after a restart, and a commit can fail.
    let keeps: Bool
    /// Nothing becomes durable between two calls of `commit`.
    let commitsOnCommand: Bool
    /// Others may have the store, too: a commit that fails is one of many, each with its own answers.
    var sharesStore = false
    let make: @Sendable (EngineSetting) throws -> any EngineUnderTest

    static let all = [
        EngineKind(testDescription: "embedded, nothing kept", keeps: false, commitsOnCommand: false) {
            try EmbeddedUnderTest(.nothing, $0)
        },
        EngineKind(testDescription: "embedded, on a journal", keeps: true, commitsOnCommand: false) {
            try EmbeddedUnderTest(.journal, $0)
        },
        EngineKind(testDescription: "embedded, on a slow store", keeps: true, commitsOnCommand: true) {
            try EmbeddedUnderTest(.slow, $0)
        },
        EngineKind(testDescription: "on a shared store", keeps: true, commitsOnCommand: false, sharesStore: true) {
            SharedUnderTest($0, transactionsMax: 4, commitsOnCommand: false)
        },
        EngineKind(
            testDescription: "on a shared store, one transaction at a time",
            keeps: true,
            commitsOnCommand: true,
            sharesStore: true
        ) {
            SharedUnderTest($0, transactionsMax: 1, commitsOnCommand: true)
        },
    ]

    static let keeping = EngineKind.all.filter(\.keeps)
    static let alone = EngineKind.all.filter { !$0.sharesStore }
    static let keepingAlone = EngineKind.keeping.filter { !$0.sharesStore }
    static let sharing = EngineKind.all.filter(\.sharesStore)
    static let onCommand = EngineKind.all.filter(\.commitsOnCommand)
}
