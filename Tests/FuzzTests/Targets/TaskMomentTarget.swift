import CommandLineTool
import Wire

/// The earliest start of a task, in the format of the command line.
enum TaskMomentTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        let text = String(decoding: input.array, as: UTF8.self)
        for now: Int64 in [.min, 0, 1_795_453_200_000, .max] {
            guard let moment = try? TaskMoment.milliseconds(text, now: now) else { continue }
            try promise((0...253_402_300_799_999).contains(moment), "a time is \(moment)")
            let written = TimeText.due(Double(moment))
            let again = try? TaskMoment.milliseconds(written, now: now)
            let shown = min((moment + 999) / 1000 * 1000, 253_402_300_799_000)
            try promise(again == shown, "\(moment) is written as \(written) and read as another")
        }
    }
}
