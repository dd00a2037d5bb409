import Foundation
import Platform
import Synchronization

/// The lines on standard output, each a JSON object with an event, the worker's number, the milliseconds since the
/// first line, and further values.
enum Line {
    enum Value {
        case text(String)
        case number(Int)

        fileprivate var json: String {
            switch self {
            case .number(let number): String(number)
            case .text(let text):
                // `JSONEncoder` escapes quotation marks and control characters.
                (try? JSONEncoder().encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
            }
        }
    }

    private static let output = Mutex(FileHandle.standardOutput)
    private static let begun = SystemClock.monotonic

    static func show(_ event: String, _ worker: Int, _ values: [(String, Value)] = []) {
        let begun = self.begun
        let at = SystemClock.monotonic - begun
        var members = ["\"event\":\"\(event)\"", "\"worker\":\(worker)", "\"at\":\(at)"]
        members += values.map { "\"\($0.0)\":\($0.1.json)" }
        let line = "{\(members.joined(separator: ","))}\n"
        self.output.withLock { try? $0.write(contentsOf: Data(line.utf8)) }
    }
}
