/// Where lines go.
package protocol LogSink: Sendable {
    /// Writes a line; it may take its time.
    ///
    /// - Returns: false when the line is lost.
    func write(_ line: LogLine, _ format: LogFormat) -> Bool
}
