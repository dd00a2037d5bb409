import Engine
import Policy
import WakeGateTestKit

/// How the worker behind a stream behaves.
enum SimulatedWorker: CaseIterable {
    case good, slow, frozen, erratic, doubling

    struct Answer {
        var after: Int64
        var result: FetchResult
    }

    /// What it will answer to a wake, if anything.
    func answers(_ generator: inout SeededGenerator, window: Int64) -> [Answer] {
        let result = generator.pick(FetchResult.allCases)
        let soon = Int64(generator.number(below: Int(window)))
        switch self {
        case .good: return [Answer(after: min(soon, 1000), result: .newData)]
        case .slow: return [Answer(after: window / 2 + soon, result: result)]
        case .frozen:
            // It thaws now and then, and answers what is long over.
            return generator.once(in: 5) ? [Answer(after: window + soon, result: result)] : []
        case .erratic:
            guard !generator.once(in: 3) else { return [] }
            return [Answer(after: soon * Int64(generator.number(in: 1...30)), result: result)]
        case .doubling:
            let again = generator.once(in: 2) ? result : generator.pick(FetchResult.allCases)
            return [Answer(after: soon / 2, result: result), Answer(after: soon, result: again)]
        }
    }
}
