import CommandLineTool
import Testing

@Suite("The wake that a command is about")
struct WakeCommandTests {
    private static let one = String(repeating: "0a", count: 16)
    private static let other = String(repeating: "Bb", count: 16)

    @Test("The wake is the one on the command line, or else that of the worker's command")
    func found() throws {
        #expect(try WakeCommands.wake(nil, ["WAKEGATE_WAKE": Self.one]) == Self.one)
        #expect(try WakeCommands.wake(Self.other, ["WAKEGATE_WAKE": Self.one]) == Self.other)
    }

    @Test("Without one, or with another text, the command is not run", arguments: [nil, "", "0a", "../streams/x"])
    func none(text: String?) {
        for variables in [[:], ["WAKEGATE_WAKE": "no id"]] {
            #expect(throws: CommandFailure.self) { try WakeCommands.wake(text, variables) }
        }
    }
}
