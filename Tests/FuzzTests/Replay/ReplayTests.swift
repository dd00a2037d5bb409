import Testing
import Wire

@Suite("Inputs that fuzzing has found", .timeLimit(.minutes(15)))
struct ReplayTests {
    @Test("Every promise holds for every kept input", arguments: FuzzTarget.all)
    func replay(target: FuzzTarget) throws {
        let inputs = try KeptInputs.inputs(target.name)
        #expect(inputs.count >= 5, "a corpus reaches something")
        for (path, bytes) in inputs {
            do {
                try bytes.withByteView { try target.check($0) }
            } catch {
                Issue.record("\(path): \(error)")
            }
        }
    }

    @Test("Every target has a corpus, and every corpus a target")
    func names() throws {
        #expect(try KeptInputs.targets() == Set(FuzzTarget.all.map(\.name)))
    }
}
