/// The least important log line that is written, and how much a line matters.
package enum LogLevel: String, CaseIterable, Sendable {
    case debug, info, warning, error
}
