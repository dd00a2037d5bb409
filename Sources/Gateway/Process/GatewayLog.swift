import Foundation
import History

/// Writes one line to standard error for each thing an operator would act on.
///
/// Events are constant words, what varies is in the fields; never a device token, a credential or a payload.
struct GatewayLog: Sendable {
    let level: GatewayConfiguration.LogLevel
    let format: GatewayConfiguration.LogFormat

    func info(_ event: StaticString, _ fields: [String: String]) { self.write(.info, event, fields) }

    func warning(_ event: StaticString, _ fields: [String: String]) { self.write(.warning, event, fields) }
    func error(_ event: StaticString, _ fields: [String: String]) { self.write(.error, event, fields) }

    /// The gateway goes on; what was lost of the history is said.
    func history(_ trouble: HistoryTrouble) {
        self.warning("history", ["trouble": trouble.message])
    }

    private func write(_ level: GatewayConfiguration.LogLevel, _ event: StaticString, _ fields: [String: String]) {
        let levels = GatewayConfiguration.LogLevel.allCases
        guard let mine = levels.firstIndex(of: self.level), let its = levels.firstIndex(of: level), its >= mine else {
            return
        }
        let time = WallTime.text(SystemClock.wall)
        var line: String
        switch self.format {
        case .text:
            line = "\(time) \(level.rawValue) \(event)"
            for (key, value) in fields.sorted(by: { $0.key < $1.key }) { line += " \(key)=\(value)" }
        case .json:
            var members = fields
            members["time"] = time
            members["level"] = level.rawValue
            members["event"] = "\(event)"
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            line = (try? encoder.encode(members)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        }
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }
}

extension ListenSetting {
    /// The addresses as one word for a log line.
    var text: String { self.isOff ? "off" : self.addresses.joined(separator: ",") }
}
