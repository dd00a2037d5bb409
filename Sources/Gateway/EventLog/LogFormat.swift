/// How a log line is written: for people, or as one JSON object.
package enum LogFormat: String, CaseIterable, Sendable {
    case text, json
}
